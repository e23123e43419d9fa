package table

import (
	"strings"
	"testing"
)

// TestWrite: columns are aligned, and no cell can end its line, change a column or reach the
// terminal.
func TestWrite(t *testing.T) {
	answer := Table{Columns: []string{"SERVICE", "UNIT"}}
	answer.Add("ns/web", "")
	answer.Add("a\tb\nc", "\x1b[31mred")
	answer.Add("long", strings.Repeat("x", 5000))
	var out strings.Builder
	if err := answer.Write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{`SERVICE  UNIT`, `ns/web   -`, `a\tb\nc  \x1b[31mred`} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	if len(lines) != 5 || len(lines[3]) > 1100 || !strings.HasSuffix(lines[3], "(5000 bytes)") {
		t.Errorf("the long cell is %d bytes in %d lines", len(lines[3]), len(lines))
	}
}

func TestList(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, ""}, {[]string{"a"}, "a"}, {[]string{"a", "b", "c"}, "a, b, c"}, {[]string{"a", "b", "c", "d"}, "a, b and 2 more"},
	} {
		if got := List(test.names); got != test.want {
			t.Errorf("List(%v) is %q, want %q", test.names, got, test.want)
		}
	}
}
