package topology

import (
	"fmt"
	"testing"
)

// TestWatched: where a Snapshot holds only the nodes of watched units, the others are outside, and
// an Ordered list ends with the first key whose nodes are not all known.
func TestWatched(t *testing.T) {
	const nodes = "a zone=x rack=1 empty=, b zone=x"
	endpoints := []string{"10.0.0.1@b", "10.0.0.2@elsewhere", "10.0.0.3"}
	all := "10.0.0.1 10.0.0.2 10.0.0.3"
	for _, tc := range []struct {
		keys, policy string
		watched      string // keys; "all" = every node is known
		config       Config
		want         string
		reason       Reason // of 10.0.0.2; "" = it is used
	}{
		{`["zone"]`, "", "zone", Config{}, "10.0.0.1", ReasonNotWatched},
		{`["zone"]`, "", "all", Config{}, "10.0.0.1", ReasonUnknownEndpoint},
		{`["zone"]`, "", "", Config{}, "10.0.0.1", ReasonNotWatched}, // b is known by another key
		{`["rack","zone"]`, "Ordered", "rack zone", Config{}, "10.0.0.1", ReasonNotWatched},
		{`["rack","zone"]`, "Ordered", "zone", Config{}, "", ReasonNotWatched},
		{`["rack","*"]`, "Ordered", "rack", Config{}, all, ""},
		{`["rack","*"]`, "Ordered", "zone", Config{}, "", ReasonNotWatched},
		{`["rack","*"]`, "Ordered", "all", Config{}, all, ""},
		{`["empty","*"]`, "Ordered", "", Config{}, all, ""}, // this node is in no unit of this key
		{`["other","*"]`, "Ordered", "", Config{}, all, ""},
		{`["zone","*"]`, "Ordered", "", Config{}, "10.0.0.1", ReasonNotWatched},
		{`["other"]`, "", "", Config{NodesWithoutUnit: WithoutUnitOpen}, all, ""},
		{`["zone"]`, "", "", Config{NodesWithoutUnit: WithoutUnitOpen}, "10.0.0.1", ReasonNotWatched},
	} {
		t.Run(fmt.Sprint(tc.keys, tc.policy, " watched ", tc.watched, tc.config.NodesWithoutUnit), func(t *testing.T) {
			s := cluster{node: "a", nodes: nodes, keys: tc.keys, policy: tc.policy, endpoints: endpoints}.snapshot()
			if tc.watched != "all" {
				s.Watched = map[string]bool{}
				for _, key := range []string{"zone", "rack"} {
					s.Watched[key] = len(tc.watched) > 0 && (tc.watched == key || tc.watched == "rack zone")
				}
			}
			view := Resolve(s, tc.config)
			sp := view.Ports[0]
			if got := addressesOf(sp.Cluster); got != tc.want {
				t.Errorf("endpoints %q, want %q", got, tc.want)
			}
			var reason Reason
			for _, d := range view.Drops(sp) {
				if d.Endpoint.Node == "elsewhere" {
					reason = d.Reason
				}
			}
			if reason != tc.reason {
				t.Errorf("the other node's endpoint is left out because %q, want %q", reason, tc.reason)
			}
		})
	}
}
