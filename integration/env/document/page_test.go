package document

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const page = "# The `one` page\n[a](b.md#c) and `[no](link)`\n" +
	"## Do it: now\n```sh\nf() {\n  g \\\n    h\n}\nkubectl apply -f - <<END\na: b\nEND\nf | sort\n```\nIt says:\n```\nfirst\n…\n```\n" +
	"## Do it: now\n```console\n$ f a\nx\n\ny\n\n$ g\n```\n```\nno output\n```\n"

func TestParse(t *testing.T) {
	p := Parse(page)
	if diff := cmp.Diff(map[string]bool{"the-one-page": true, "do-it-now": true, "do-it-now-1": true}, p.Anchors); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Span{{2, "b.md#c"}}, p.Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	got, err := p.Examples()
	if err != nil {
		t.Fatal(err)
	}
	const heading = "Do it: now"
	want := []Example{
		{Heading: heading, Output: []string{"first", "…"}, Commands: []Command{
			{5, "f() {\n  g \\\n    h\n}"}, {9, "kubectl apply -f - <<END\na: b\nEND"}, {12, "f | sort"},
		}},
		{Heading: heading, Commands: []Command{{21, "f a"}}, Output: []string{"x", "", "y"}},
		{Heading: heading, Commands: []Command{{26, "g"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
	if _, err := Parse("```sh\nf (\n```\n").Examples(); err == nil || !strings.Contains(err.Error(), "line 2: no shell reads this block") {
		t.Errorf("of a block that is no shell's it is said: %v", err)
	}
}

func TestCalls(t *testing.T) {
	got, err := Calls(`for i in 1 2; do a "b $c" 'd e' || exit; done | f --g={h,i} $(k l) # m`)
	want := [][]string{{"a", "b $c", "d e"}, {"exit"}, {"f", "--g={h,i}", "$(k l)"}, {"k", "l"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; calls (-want +got):\n%s", err, diff)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		how    Comparison
		shown  string
		output string
		equal  bool
	}{
		{Exact, "a\nb", "a\nb\n", true},
		{Exact, "a\nb", "a\nc\n", false},
		{Exact, "a", "a\nb\n", false},
		{Exact, "a\n…", "a\nb\nc\n", true},
		{Exact, "a … c", "a b\nc\n", false},
		{Exact, "a … c.", "a b c.\n", true},
		{Exact, "2 of 4", "3 of 4\n", false},
		{Varies, "2 of 4", "x\n37  of 4\ny\n", true},
		{Varies, "a 2/2 9s", "a  2/2 15s\n", true},
		{Varies, "a 2/2 9s", "a 0/2 9s\n", false},
		{Varies, "to 10.0.0.1/32", "to 10.1.2.33/32\n", true},
		{Varies, "a\nb", "b\na\n", false},
		{Varies, "a 1 |", "a . |\n", false},
	} {
		if err := Compare(c.how, strings.Split(c.shown, "\n"), c.output); (err == nil) != c.equal {
			t.Errorf("%q is shown for %q: %v", c.shown, c.output, err)
		}
	}
}

// TestSession: one command finds what the one before it left, and takes no input from the next one.
func TestSession(t *testing.T) {
	s := Shell{Dir: t.TempDir()}.Open(t, time.Minute)
	for _, c := range []struct {
		command, output string
		code            int
	}{
		{"f() {\n  echo \"$1\"\n}", "", 0},
		{"cd / && export A=b", "", 0},
		{"cat; f $A; pwd; echo c >&2; (exit 3)", "b\n/\nc\n", 3},
		{"cat <<END\nx\nEND", "x\n", 0},
		{"printf e", "e", 0},
	} {
		if output, code := s.Type(c.command); output != c.output || code != c.code {
			t.Errorf("%s: %q and exit code %d, want %q and %d", c.command, output, code, c.output, c.code)
		}
	}
}

// TestLateCommand: what takes too long is ended, with what it has started.
func TestLateCommand(t *testing.T) {
	recorded := &failed{TB: t}
	done := make(chan struct{})
	dir := t.TempDir()
	go func() { // Fatalf ends it
		defer close(done)
		s := Shell{Dir: dir}.Open(recorded, 100*time.Millisecond)
		s.Type("sleep 1000 | cat")
		recorded.says = "done"
	}()
	<-done
	if !strings.Contains(recorded.says, "not done within 100ms") {
		t.Errorf("of a command that does not end it is said: %s", recorded.says)
	}
}

// failed is a test that may fail.
type failed struct {
	testing.TB
	says string
}

func (f *failed) Helper() {}

func (f *failed) Fatalf(format string, args ...any) {
	f.says = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
