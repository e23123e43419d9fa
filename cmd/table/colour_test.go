package table

import (
	"regexp"
	"strings"
	"testing"
)

// TestColours: words of state have colours, in cells of state alone, and columns stay aligned.
func TestColours(t *testing.T) {
	answer := Table{Columns: []string{"NODE", "DAEMON", "READY", "REASON"}}
	answer.Add("refused", "healthy", "True", "")
	answer.Add("unknown", "unknown", "False", "error in a sentence")
	answer.Add("b", "unhealthy", "Unknown", "Degraded (UnitsFailed), Contested")
	answer.Add(" ", "refused ", "\x1b[31mno", "")
	var simple, coloured strings.Builder
	if err := answer.Write(&simple); err != nil {
		t.Fatal(err)
	}
	if err := answer.Write(Coloured(&coloured)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(simple.String(), "\x1b") {
		t.Errorf("colours without a terminal: %q", simple.String())
	}
	escapes := regexp.MustCompile("\x1b\\[[0-9]+m")
	if got := escapes.ReplaceAllString(coloured.String(), ""); got != simple.String() {
		t.Errorf("without its colours the table is\n%s\nwant\n%s", got, simple.String())
	}
	lines := strings.Split(coloured.String(), "\n")
	for i, want := range []string{
		"NODE     DAEMON     READY       REASON",
		"refused  healthy    True        -",
		"unknown  \x1b[33munknown\x1b[0m    \x1b[31mFalse\x1b[0m       error in a sentence",
		"b        \x1b[31munhealthy\x1b[0m  \x1b[33mUnknown\x1b[0m     \x1b[31mDegraded\x1b[0m (UnitsFailed), Contested",
		`         refused    \x1b[31mno  -`,
	} {
		if lines[i] != want {
			t.Errorf("line %d is\n%q, want\n%q", i, lines[i], want)
		}
	}
}

func TestState(t *testing.T) {
	var w strings.Builder
	if got := State(&w, "no"); got != "no" {
		t.Errorf("%q without a terminal", got)
	}
	if got := State(Coloured(&w), "no"); got != "\x1b[31mno\x1b[0m" {
		t.Errorf("%q on a terminal", got)
	}
	if got := State(Coloured(&w), "yes"); got != "yes" {
		t.Errorf("%q on a terminal", got)
	}
}
