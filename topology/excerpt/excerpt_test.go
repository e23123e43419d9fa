package excerpt

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestExcerpts(t *testing.T) {
	for _, test := range []struct {
		name, got, want string
	}{
		{"a short text is unchanged", Of("web: 10.96.0.1"), "web: 10.96.0.1"},
		{"line breaks are escaped", Of("a\nb\r\tc"), `a\nb\r\tc`},
		{"bytes that are not UTF-8", Of("a\xffb"), `a\xffb`},
		{"the replacement character itself", Of("a\ufffdb"), "a\ufffdb"},
		{"text direction", Of("a\u202eb"), `a\u202eb`},
		{"a terminal's control sequence", Of("\x1b[31mred"), `\x1b[31mred`},
		{"letters of any script", Of("北京"), "北京"},
		{"quotes in an unquoted text", Of(`["zone"]`), `["zone"]`},
		{"quoted", Quoted("a\n\"b\""), `"a\n\"b\""`},
		{"empty", Of("") + Quoted(""), `""`},
		{"exactly as long as allowed", Of(strings.Repeat("x", MaxChars)), strings.Repeat("x", MaxChars)},
		{"bytes that fit", Fit("web: 北京", 11), "web: 北京"},
		{"bytes that do not fit", Fit(strings.Repeat("a", 50)+strings.Repeat("z", 50), 39), strings.Repeat("a", 12) + "... (100 bytes) ... " + strings.Repeat("z", 7)},
		{"characters are not cut in two", Fit(strings.Repeat("京", 20), 38), strings.Repeat("京", 4) + "... (60 bytes) ... " + strings.Repeat("京", 2)},
		{"one too long", Of(strings.Repeat("x", MaxChars+1)), strings.Repeat("x", MaxChars-len("... (201 bytes)")) + "... (201 bytes)"},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, test.got, test.want)
		}
	}
}

// FuzzExcerpts: whatever the text, the results are bounded and printable.
func FuzzExcerpts(f *testing.F) {
	f.Add("")
	f.Add("\n\xff\u202e")
	f.Add(strings.Repeat("\x00", 300))
	f.Add(strings.Repeat("北", 199) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		long := strings.Repeat(text, 30)
		for limit, all := range map[int][]string{
			MaxChars:      {Of(text), Quoted(text), Of(long), Quoted(long)},
			MaxLineChars:  {Message(text), Message(long)},
			4 * len(long): {Line(long)},
		} {
			for _, got := range all {
				if n := utf8.RuneCountInString(got); n > limit {
					t.Errorf("%q has %d characters, want at most %d", got, n, limit)
				}
				if strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) || !utf8.ValidString(got) {
					t.Errorf("%q is not printable", got)
				}
			}
		}
		for _, limit := range []int{32, 256} {
			for _, text := range []string{text, long} {
				got := Fit(text, limit)
				if len(got) > limit || Fit(got, limit) != got || !utf8.ValidString(got) || Line(got) != got {
					t.Errorf("%q has %d bytes, want at most %d, printable", got, len(got), limit)
				}
			}
		}
		if once := Line(text); Line(once) != once {
			t.Errorf("%q is escaped twice", text)
		}
	})
}

func TestCostOfAHugeText(t *testing.T) {
	huge := strings.Repeat("\x00", 64<<20)
	if n := testing.AllocsPerRun(1, func() { Of(huge) }); n > 2000 {
		t.Errorf("%v allocations for a text of 64 MiB", n)
	}
	if got := Of(huge); !strings.HasSuffix(got, `\x00... (67108864 bytes)`) {
		t.Errorf("got %s", got)
	}
}

// TestOutputIsLimited: of endless output only the beginning is kept, and the program can continue.
func TestOutputIsLimited(t *testing.T) {
	var output Output
	cmd := exec.Command("sh", "-c", "echo first; head -c 10000000 /dev/zero; echo last >&2")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if text := output.String(); len(text) != MaxOutputBytes+len("...") || !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "...") {
		t.Errorf("%d bytes are kept: %.20q", len(text), text)
	}
	var short Output
	if n, err := short.Write([]byte("text")); n != 4 || err != nil || short.String() != "text" {
		t.Errorf("got %q, %d, %v", short.String(), n, err)
	}
}
