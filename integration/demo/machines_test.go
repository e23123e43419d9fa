package main

import (
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
)

// TestMachinesDemo plays the whole demo: closure holds, and no file is left.
func TestMachinesDemo(t *testing.T) {
	need.Cluster(t)
	out := show(t, &machinesStage{})
	for _, want := range []string{
		"node/gz-2   Ready", "deployment.apps/deploymentgrid-demo-guangzhou   2/2", "80 requests: 0 left their unit, 0 failed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
	t.Logf("\n%s", out)
}

// TestMachinesInterrupt ends the demo when everything runs, as Ctrl-C does.
func TestMachinesInterrupt(t *testing.T) {
	need.Cluster(t)
	t.Setenv("TMPDIR", t.TempDir())
	netns.InterruptDemo(t, &machinesStage{}, "gridproxy runs on every machine")
}
