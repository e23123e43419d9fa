package daemon

import (
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
)

// TestStateOfATrial: a proxy beside another one has a folder of its own, because it serves other
// Services.
func TestStateOfATrial(t *testing.T) {
	o := options.Options{NodeName: "bj-3", StateDir: t.TempDir()}
	trial := o
	trial.ServiceProxyName = "trial"
	if _, err := stateOf(trial).Save(topology.Snapshot{Node: "bj-3"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, problems, ok := stateOf(o).Load(); ok || len(problems) > 0 {
		t.Errorf("the state of a trial is read by the proxy of the node: %v, %q", ok, problems)
	}
	if _, _, ok := stateOf(trial).Load(); !ok {
		t.Error("a trial does not find its state")
	}
}
