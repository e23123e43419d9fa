package documents

import (
	"strings"
	"testing"
)

// TestReadOne: a configuration has one document. Comments and bare markers do not count.
func TestReadOne(t *testing.T) {
	for text, want := range map[string]struct{ text, err string }{
		"":                                     {},
		"\ufeff# c\n---\n":                     {},
		"a: 1\n":                               {text: "a: 1\n"},
		"# c\r---\ra: 1\r...\r# c\r---\r":      {text: "---\na: 1\n"},
		"\xfe\xff\x00a\x00:\x00 \x001\x20\x28": {text: "a: 1\n"},
		"a: 1\n---\nb: 2\n":                    {err: "line 2: a second document begins"},
		"a: 1\u0085---\u0085b: 2\u0085":        {err: "line 2: a second document begins"},
		"a: 1\n...\nb: 2\n":                    {err: "line 2: a second document begins"},
		"{a: 1}\n{b: 2}\n":                     {err: "the document that begins at line 1 (line 2: "},
		"a: 1\n---\n# \x00\n":                  {err: "line 3: holds NUL or is not UTF-8"},
		"a: \xe4\n":                            {err: "line 1: holds NUL or is not UTF-8"},
	} {
		got, err := ReadOne([]byte(text))
		if want.err == "" && (err != nil || string(got) != want.text) {
			t.Errorf("%q: got %q and %v, want %q", text, got, err, want.text)
		}
		if want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)) {
			t.Errorf("%q: got error %v, want %q", text, err, want.err)
		}
	}
}
