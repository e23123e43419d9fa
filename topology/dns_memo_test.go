package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestDNSMemoEqualsResolveDNS: after any history of Snapshots, the remembered answer equals the
// computed one. What did not change is the same pointer.
func TestDNSMemoEqualsResolveDNS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memo topology.DNSMemo
		var rules topology.Memo
		var config topology.Config
		s := topologytest.WithNames(t)
		for range rapid.IntRange(1, 8).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				s = s.Change(t)
			}
			if rapid.IntRange(0, 9).Draw(t, "new config") == 0 {
				config.NodesWithoutUnit = rapid.SampledFrom([]topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "fallback")
			}
			if rapid.IntRange(0, 19).Draw(t, "other node") == 0 {
				s.Node = rapid.SampledFrom([]string{"a", "b", "ghost"}).Draw(t, "node")
			}
			got := memo.Resolve(s.Snapshot, config)
			if diff := cmp.Diff(topology.ResolveDNS(s.Snapshot, config), got, sameView); diff != "" {
				t.Fatalf("DNSMemo differs (-computed +remembered):\n%s", diff)
			}
			if again := memo.Resolve(s.Snapshot, config); !slices.Equal(got.Services, again.Services) {
				t.Fatal("an unchanged Snapshot gave other pointers")
			}
			if rapid.Bool().Draw(t, "as the daemon") {
				s.LastKeys = rules.Resolve(s.Snapshot, config).LastKeys
			}
		}
		s.Services, s.Slices = nil, nil
		if view := memo.Resolve(s.Snapshot, config); len(view.Services) != 0 || topology.RememberedNames(&memo) != 0 {
			t.Fatalf("of an empty cluster %d Services are remembered", topology.RememberedNames(&memo))
		}
	})
}

// TestNamesChangeNoRules: the rules of a Snapshot with names are those without.
func TestNamesChangeNoRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.WithNames(t)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			s = s.Change(t)
		}
		without := s.WithoutNames()
		want, got := topology.Resolve(without, topology.Config{}), topology.Resolve(s.Snapshot, topology.Config{})
		byName := cmp.Comparer(func(a, b *topology.Slice) bool {
			return a.Name == b.Name && cmp.Equal(a.Endpoints, b.Endpoints, sameView)
		})
		if diff := cmp.Diff(want.Ports, got.Ports, sameView, byName); diff != "" {
			t.Fatalf("ports (-without +with names):\n%s", diff)
		}
		if diff := cmp.Diff(dropsOf(want), dropsOf(got), equateAddrs); diff != "" {
			t.Fatalf("left out (-without +with names):\n%s", diff)
		}
		for _, svc := range without.Services {
			if !slices.Equal(want.LastKeys[svc.UID], got.LastKeys[svc.UID]) {
				t.Fatalf("%s: keys %v with names, %v without", svc.Name, got.LastKeys[svc.UID], want.LastKeys[svc.UID])
			}
		}
		if !slices.Equal(topology.APIProxies(without.Slices), topology.APIProxies(s.Slices)) {
			t.Fatal("with names other API proxies are named")
		}
	})
}

// TestNamesAreClosed states the promise: no endpoint in a name of a closed Service is outside, no
// alias is an endpoint's own name, and each leads to an endpoint of the Service whose host name is
// that of a Grid's StatefulSet in a unit of this node.
func TestNamesAreClosed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.WithNames(t)
		mine := s.Nodes[s.Node]
		for _, svc := range topology.ResolveDNS(s.Snapshot, topology.Config{}).Services {
			own := map[string]bool{}
			for _, e := range svc.Endpoints {
				own[e.Hostname] = true
				in := topology.Intersects(svc.Closure.Keys, mine, s.Nodes[e.Node]) || svc.Closure.OwnOnly && e.Node == s.Node
				if svc.Closure.Closed() && !in && svc.Closure.KeyInUse != topology.AnyEndpoint {
					t.Fatalf("%v: %v on %q is outside of the unit of %q", svc.Service, e.Addr, e.Node, s.Node)
				}
			}
			for _, a := range svc.Aliases {
				made := slices.ContainsFunc(s.Grids, func(g types.NamespacedName) bool {
					return g.Namespace == svc.Service.Namespace && slices.ContainsFunc(svc.Closure.Keys, func(key string) bool {
						ordinal, of := strings.CutPrefix(a.Alias, g.Name+"-")
						return of && mine[key] != "" && a.Hostname == topology.StatefulSetName(g.Name, mine[key])+"-"+ordinal
					})
				})
				if own[a.Alias] || !own[a.Hostname] || !made {
					t.Fatalf("%v: alias %+v; host names %v, Grids %v, this node %v", svc.Service, a, own, s.Grids, mine)
				}
			}
		}
	})
}

// BenchmarkResolveDNSChange: one changed slice among 10,000 Services.
func BenchmarkResolveDNSChange(b *testing.B) {
	size := topologytest.Large{Services: 10000, Endpoints: 2, Nodes: 100, Names: true}
	s := size.Snapshot()
	for i := range 100 {
		s.Grids = append(s.Grids, types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("grid-%05d", i)})
	}
	var memo topology.DNSMemo
	memo.Resolve(s, topology.Config{})
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		s = size.Move(s, 17, 1+n%2)
		b.StartTimer()
		memo.Resolve(s, topology.Config{})
	}
}
