package manifest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"gridproxy/topology/excerpt"
)

// TestProblemsAreBounded: neither a huge value nor a huge number of broken objects makes a huge
// message.
func TestProblemsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Service\nmetadata: {name: A%d}\n", i)
	}
	huge := strings.Repeat("x", 1<<16)
	for _, format := range []string{
		"metadata: {name: %s}", "metadata: {name: web}\nspec: {clusterIP: %s}", "metadata: {name: web, %s: {a: 1}, namespace: 7}",
		"metadata: {name: web}\nspec: {type: %s}", "metadata: {name: web}\n%[1]s: 1\n%[1]s: 2",
	} {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Service\n"+format+"\n", huge)
	}
	t.Chdir(t.TempDir())
	write(t, "a.yaml", text.String())
	_, _, err := Read([]string{"a.yaml"}, nil)
	lines := strings.Split(fmt.Sprint(err), "\n")
	if want := "more problems are not listed; correct these first"; !strings.HasSuffix(lines[len(lines)-1], want) {
		t.Errorf("the last line is %q, want one with %q", lines[len(lines)-1], want)
	}
	if len(lines) != problemsMax+1 {
		t.Errorf("%d lines, want %d", len(lines), problemsMax+1)
	}
	for _, p := range new(options).parse("a.yaml", []byte(text.String())).errs {
		if n := utf8.RuneCountInString(p.Error()); n > excerpt.MaxLineChars {
			t.Errorf("a problem of %d characters: %.300s", n, p)
		}
	}
}
