package topology_test

import (
	"net/netip"
	"slices"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var equateAddrs = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

// TestMemoEqualsResolve: after any sequence of changes, the remembered answer equals the computed
// one.
func TestMemoEqualsResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memo topology.Memo
		s := topologytest.Snapshot(t)
		c := topology.Config{}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			s = topologytest.Change(t, s)
			c.NodesWithoutUnit = rapid.SampledFrom([]topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "fallback")
			want, got := topology.Resolve(s, c), memo.Resolve(s, c)
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), equateAddrs); diff != "" {
				t.Fatalf("Memo differs (-anew +remembered):\n%s", diff)
			}
		}
	})
}

// TestMemoKeepsPointers: where nothing changed, the same pointers come out.
func TestMemoKeepsPointers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memo topology.Memo
		s := topologytest.Snapshot(t)
		first := memo.Resolve(s, topology.Config{})
		if again := memo.Resolve(s, topology.Config{}); !slices.Equal(first.Ports, again.Ports) {
			t.Fatal("an unchanged Snapshot gave other pointers")
		}
	})
}

// TestClosureHolds states the promise itself: no endpoint that a closed Service may use
// is on a node that shares no key's value with this one.
func TestClosureHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		for _, sp := range topology.Resolve(s, topology.Config{}).Ports {
			if !sp.Closure.Closed() {
				continue
			}
			for _, e := range append(slices.Clone(sp.Cluster), sp.Local...) {
				shared := topology.Intersects(sp.Closure.Keys, s.Nodes[s.Node], s.Nodes[e.Node])
				own := sp.Closure.OwnOnly && e.Node == s.Node
				if !shared && !own && sp.Closure.KeyInUse != topology.AnyEndpoint {
					t.Fatalf("%v: %v on %q left the unit of %q; closure %+v", sp.Name, e.Addr, e.Node, s.Node, sp.Closure)
				}
			}
		}
	})
}

// TestEveryEndpointIsKeptOrDropped: what closure leaves out has a reason, and an ordinary
// Service loses nothing to it.
func TestEveryEndpointIsKeptOrDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		for _, sp := range topology.Resolve(s, topology.Config{}).Ports {
			for _, d := range sp.Closure.Dropped {
				if d.Reason == "" {
					t.Fatalf("%v: %v is left out without a reason", sp.Name, d.Endpoint.Addr)
				}
			}
			if !sp.Closure.Closed() && len(sp.Closure.Dropped) > 0 {
				t.Fatalf("%v is ordinary, yet closure left out %v", sp.Name, sp.Closure.Dropped)
			}
		}
	})
}
