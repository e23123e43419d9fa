package grid

import (
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
)

// TestFederationOff: a Grid that asks to be distributed where nothing distributes it says so in a
// condition, with one Event. Ready is not changed by it.
func TestFederationOff(t *testing.T) {
	of := func(off bool) v1.WorkloadGridStatus {
		return expand.Status(expand.Observed{
			Grid:          expand.Grid{Kind: expand.DeploymentGrid, Name: "web", Key: "zone"},
			FederationOff: off,
		})
	}
	without, with := of(false), of(true)
	if c := condition(with, v1.ConditionNotDistributed); !isTrue(c) || c.Reason != "FederationOff" {
		t.Errorf("the condition is %+v", c)
	}
	if c := condition(without, v1.ConditionNotDistributed); c != nil {
		t.Errorf("without a reason the condition is %+v", c)
	}
	if was, is := condition(without, v1.ConditionReady), condition(with, v1.ConditionReady); *was != *is {
		t.Errorf("Ready was %+v and is %+v", was, is)
	}
	if all := notices(without, with); len(all) != 1 || all[0].reason != eventNotDistributed {
		t.Errorf("the Events are %v", all)
	}
	if all := notices(with, with); len(all) != 0 {
		t.Errorf("said again: %v", all)
	}
}

// TestObservesFederationOff: only the label with the value yes asks to be distributed.
func TestObservesFederationOff(t *testing.T) {
	for _, test := range []struct {
		value             string
		distributes, want bool
	}{{"yes", false, true}, {"yes", true, false}, {"no", false, false}, {"", false, false}} {
		g := &v1.DeploymentGrid{}
		g.SetLabels(map[string]string{"superedge.io/fed": test.value})
		r := reconciler{distributes: test.distributes}
		if got := r.federationOff(g); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
