package hub

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	"k8s.io/client-go/tools/events"
)

// TestFaults: a fault has one Event until it is another one, and few are sent at once.
func TestFaults(t *testing.T) {
	to := events.NewFakeRecorder(1000)
	var f faults
	grids := []plan.Grid{{Ref: plan.Ref{Kind: "DeploymentGrid", Namespace: "shop", Name: "pos", UID: "1"}}}
	for i, step := range []struct {
		message string // "": it is well
		want    int
	}{{"bad\nselector", 1}, {"bad\nselector", 0}, {"worse", 1}, {"", 0}, {"worse", 1}} {
		now := map[string]v1alpha1.Problem{}
		if step.message != "" {
			now["1"] = v1alpha1.Problem{Reason: "Unreadable", Message: step.message}
		}
		f = f.tell(to, grids, now)
		if len(to.Events) != step.want {
			t.Errorf("step %d: %d Events, want %d", i, len(to.Events), step.want)
		}
		for len(to.Events) > 0 {
			if text := <-to.Events; strings.Contains(text, "\n") {
				t.Errorf("step %d: %q", i, text)
			}
		}
	}
	now := map[string]v1alpha1.Problem{}
	grids = nil
	for i := range 2*eventsMax + 1 {
		uid := fmt.Sprint(i)
		grids = append(grids, plan.Grid{Ref: plan.Ref{UID: uid}})
		now[uid] = v1alpha1.Problem{Reason: "Bad"}
	}
	for _, want := range []int{eventsMax, 2 * eventsMax, 2*eventsMax + 1, 2*eventsMax + 1} {
		if f = f.tell(to, grids, now); len(to.Events) != want || len(f) != want {
			t.Errorf("%d Events, %d remembered, want %d", len(to.Events), len(f), want)
		}
	}
	if f = f.tell(to, nil, now); len(f) > 0 {
		t.Errorf("Grids that are gone are remembered: %v", f)
	}
}
