package event

import (
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestEventsFollowHistory: over any history, the Events are the same if no port keeps its pointer,
// so that each Service is looked at each time.
func TestEventsFollowHistory(t *testing.T) {
	said := 0
	rapid.Check(t, func(t *rapid.T) {
		var memo topology.Memo
		var kept, fresh State
		s := topologytest.Snapshot(t)
		for range rapid.IntRange(2, 12).Draw(t, "views") {
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				s = topologytest.Change(t, s)
			}
			view := memo.Resolve(s, topology.Config{})
			s.LastKeys = view.LastKeys
			var got, want []Event
			kept, got = Next(kept, s, view)
			fresh, want = Next(fresh, s, copied(view))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-every Service looked at +changed ones):\n%s", diff)
			}
			said += len(got)
		}
	})
	if said == 0 {
		t.Error("nothing was ever reported: the histories drawn test nothing")
	}
}

// copied is a View of which no port is the pointer of another View.
func copied(v topology.View) topology.View {
	ports := v.Ports
	v.Ports = nil
	for _, sp := range ports {
		port := *sp
		v.Ports = append(v.Ports, &port)
	}
	return v
}
