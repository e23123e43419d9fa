package main

import (
	"errors"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
)

// TestDemo plays the whole demo: closure holds, the screen is narrow enough, the rules that
// it shows are the node's, and no file is left.
func TestDemo(t *testing.T) {
	need.IPTables(t)
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	s := &stage{}
	if err := errors.Join(s.Show(t.Context(), &out), s.Close()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("line of %d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{"480 requests: 0 left their unit, 0 failed", "KUBE-SVC-COY5MDFFORWDI6KK", "--to-destination 10.0.1.72:8080"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "--to-destination 10.0.0.139:8080") {
		t.Errorf("the rules of bj-3 lead to guangzhou:\n%s", &out)
	}
	netns.NothingLeft(t)
}

// TestInterrupt ends the demo in the middle, as Ctrl-C does.
func TestInterrupt(t *testing.T) {
	need.IPTables(t)
	t.Setenv("TMPDIR", t.TempDir())
	netns.InterruptDemo(t, &stage{}, "40 requests")
}
