package main

import (
	"strings"
	"testing"

	"gridproxy/integration/env/netns"
)

func TestWrap(t *testing.T) {
	long := "-A KUBE-SVC-COY5MDFFORWDI6KK -m comment --comment \"default/servicegrid-demo-svc -> 10.0.0.70:8080\"" +
		" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-RGX5HKSX4VMSG6MC"
	wrapped := wrap(long, 96)
	for line := range strings.Lines(wrapped) {
		if len(strings.TrimRight(line, "\n")) > 96 {
			t.Errorf("line of %d columns: %q", len(line), line)
		}
	}
	if !strings.Contains(wrapped, "\n") {
		t.Errorf("a rule of %d columns is one line", len(long))
	}
	if got := strings.Join(strings.Fields(wrapped), " "); got != long {
		t.Errorf("the rule changed: %q", got)
	}
}

// TestConclude: what left its unit or failed, before or after, makes the demo fail.
func TestConclude(t *testing.T) {
	for name, v := range map[string]netns.Verdict{"left": {Asked: 3, Left: 1}, "failed": {Asked: 3, Failed: 1}, "good": {Asked: 3}} {
		if err := conclude(&strings.Builder{}, netns.Verdict{}, v); (err == nil) != v.Good() {
			t.Errorf("%s: the demo ends with %v", name, err)
		}
	}
}
