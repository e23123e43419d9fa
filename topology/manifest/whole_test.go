package manifest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// encodings returns the ways in which an editor saves a text again.
func encodings() map[string]func(string) string {
	in16 := func(order binary.AppendByteOrder) func(string) string {
		return func(text string) string {
			var encoded []byte
			for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
				encoded = order.AppendUint16(encoded, unit)
			}
			return string(encoded)
		}
	}
	return map[string]func(string) string{
		"UTF-8":                func(text string) string { return text },
		"UTF-8 with a mark":    func(text string) string { return "\ufeff" + text },
		"UTF-16LE with a mark": in16(binary.LittleEndian),
		"UTF-16BE with a mark": in16(binary.BigEndian),
	}
}

func lineEnds() []string { return []string{"\n", "\r\n", "\r", "\u0085", "\u2028", "\u2029"} }

func namesOf(t interface{ Helper() }, text string) ([]string, error) {
	t.Helper()
	all, _, err := ReadRaw([]string{Stdin}, strings.NewReader(text))
	var names []string
	for _, r := range all {
		names = append(names, r.place.name+string(r.JSON))
	}
	return names, err
}

// TestSavedAgain reads one text in each encoding with each line end.
func TestSavedAgain(t *testing.T) {
	const text = `# Ünïcode 🌍
%YAML 1.1
---
apiVersion: v1
kind: Node
metadata:
  name: a
  annotations:
    note: |
      two "lines" 🌍
      --- of text
--- # another
{"apiVersion": "v1", "kind": "Node",
  "metadata": {"name": "b"}}
...
apiVersion: v1
kind: Node
metadata: {name: c}
---
`
	want, err := namesOf(t, text)
	if err != nil || len(want) != 3 {
		t.Fatalf("read %q: %v", want, err)
	}
	for name, encode := range encodings() {
		for _, end := range lineEnds() {
			for _, last := range []string{"", end} {
				saved := encode(strings.TrimSuffix(strings.ReplaceAll(text, "\n", end), end) + last)
				got, err := namesOf(t, saved)
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%s, line end %+q: %v (-want +got)\n%s", name, end, err, diff)
				}
			}
		}
	}
}

// TestReadWholeOrRefused puts objects, markers, line ends and byte order marks in any order. Each
// object is found, unless there is an error.
func TestReadWholeOrRefused(t *testing.T) {
	odd := []string{"---", "...", "--- ", "...\t", "\ufeff", "# c\n", "%YAML 1.1\n", " ", "\t", "{}", "x: y", "null", "\x00", "\xff", "|", "'", "\""}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var names []string
		object := func(form string) {
			names = append(names, fmt.Sprintf("n%d", len(names)))
			fmt.Fprintf(&text, form, names[len(names)-1])
		}
		for range rapid.IntRange(1, 10).Draw(t, "parts") {
			end := rapid.SampledFrom(lineEnds()).Draw(t, "line end")
			switch rapid.IntRange(0, 3).Draw(t, "part") {
			case 0:
				object(strings.Join([]string{"apiVersion: v1", "kind: Node", "metadata: {name: %s}", ""}, end))
			case 1:
				object(`{"apiVersion": "v1", "kind": "Node",` + end + `"metadata": {"name": "%s"}}`)
			case 2:
				text.WriteString("---" + end)
				object(`{apiVersion: v1, kind: Node, metadata: {name: %s}}` + end)
			default:
				text.WriteString(rapid.SampledFrom(odd).Draw(t, "odd"))
			}
			if rapid.Bool().Draw(t, "ends its line") {
				text.WriteString(end)
			}
		}
		encoding := rapid.SampledFrom(slices.Sorted(maps.Keys(encodings()))).Draw(t, "encoding")
		got, err := namesOf(t, encodings()[encoding](text.String()))
		if err != nil {
			return
		}
		for _, name := range names {
			if !strings.Contains(strings.Join(got, "\n"), name) {
				t.Fatalf("%+q has %s, and %q were read", text.String(), name, got)
			}
		}
	})
}

// TestRefusedText: each error names the file and the line, and hides no other document.
func TestRefusedText(t *testing.T) {
	const good = "{apiVersion: v1, kind: Node, metadata: {name: good}}\n---\n"
	le := encodings()["UTF-16LE with a mark"]
	for name, c := range map[string]struct{ text, line string }{
		"NUL":                    {good + "a: \x00\n", "line 3: "},
		"Latin-1":                {good + "a: 1\nb: K\xf6ln\n", "line 4: "},
		"Latin-1 in a comment":   {good + "# K\xf6ln\n", "line 3: "},
		"UTF-16 cut in a unit":   {le(good+"a: 1") + "\x0a", "line 3: "},
		"half a surrogate pair":  {le(good+"a: ") + "\x3d\xd8", "line 3: "},
		"wrong surrogate pair":   {le(good+"a: ") + "\x3d\xd8\x0a\x00", "line 3: "},
		"two flow mappings":      {good + "{a: 1}\n{b: 2}\n", "line 4: "},
		"two of JSON":            {good + "{\"a\": 1}\n{\"b\": 2}\n", "line 4: "},
		"text behind ---":        {good + "{a: 1} --- {b: 2}\n", "line 3: "},
		"directive without mark": {good + "{a: 1}\n%YAML 1.1\n", "line 5: "},
	} {
		names, err := namesOf(t, c.text)
		if err == nil || !strings.HasPrefix(err.Error(), "standard input: document 2: ") || !strings.Contains(err.Error(), c.line) {
			t.Errorf("%s: %v", name, err)
		}
		if len(names) != 1 || !strings.HasPrefix(names[0], "good") {
			t.Errorf("%s hides the other document: %q", name, names)
		}
	}
	for name, text := range map[string]string{
		"UTF-16 without a mark": strings.TrimPrefix(le("a: 1\n"), "\xff\xfe"),
		"UTF-32LE":              "\xff\xfe\x00\x00a\x00\x00\x00",
		"UTF-32BE":              "\x00\x00\xfe\xff\x00\x00\x00a",
	} {
		if _, err := namesOf(t, text); err == nil || !strings.HasPrefix(err.Error(), "standard input: document 1: line 1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, mark := range []string{"", "\ufeff", "\xff\xfe", "\xfe\xff"} {
		if p := new(options).parse("a.yaml", []byte(mark)); len(p.errs) != 1 || !strings.Contains(p.errs[0].Error(), "is empty") {
			t.Errorf("a file that holds only %q: %v", mark, p.errs)
		}
	}
}

// TestLineEndsInJSON keeps what is a line end only in YAML.
func TestLineEndsInJSON(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","annotations":{"x":"1` + "\u00852\u20283\u2029" + `"}}}`
	if got, err := namesOf(t, text); err != nil || len(got) != 1 || got[0] != "a"+text {
		t.Errorf("read %q: %v", got, err)
	}
}
