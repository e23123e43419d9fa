package rules_test

import (
	"net/netip"
	"slices"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var equate = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}),
	cmpopts.EquateEmpty(),
}

func drawConfig(t *rapid.T) rules.Config {
	c := rules.Config{MasqueradeAll: rapid.Bool().Draw(t, "masquerade all"), LocalhostNodePorts: true}
	if rapid.Bool().Draw(t, "detector") {
		c.DetectLocal.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	}
	return c
}

// TestIncrementalEqualsFromScratch: after any sequence of changes, both memos together return what
// is computed from scratch from the last Snapshot.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var views topology.Memo
		var memo rules.Memo
		s := topologytest.Snapshot(t)
		c := drawConfig(t)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			s = topologytest.Change(t, s)
			if rapid.IntRange(0, 5).Draw(t, "new config") == 0 {
				c = drawConfig(t)
			}
			want := rules.Compile(topology.Resolve(s, topology.Config{}), c)
			got := memo.Compile(views.Resolve(s, topology.Config{}), c)
			if diff := cmp.Diff(want, got, equate); diff != "" {
				t.Fatalf("incremental differs (-from scratch +incremental):\n%s", diff)
			}
			again := memo.Compile(views.Resolve(s, topology.Config{}), c)
			if !slices.Equal(got.Services, again.Services) {
				t.Fatal("an unchanged View gave other pointers")
			}
		}
	})
}

// TestFrontendsAreDisjoint: no two Frontends of a Ruleset match the same packets, so the
// order in which a backend writes them decides nothing.
func TestFrontendsAreDisjoint(t *testing.T) {
	type match struct {
		addr     netip.AddrPort
		protocol string
	}
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		seen := map[match]topology.ServicePortName{}
		for _, svc := range rules.Compile(topology.Resolve(s, topology.Config{}), drawConfig(t)).Services {
			for _, f := range svc.Frontends {
				m := match{f.Addr, string(svc.Name.Protocol)}
				if other, taken := seen[m]; taken {
					t.Fatalf("%v and %v both answer on %v", other, svc.Name, f.Addr)
				}
				seen[m] = svc.Name
			}
		}
	})
}

// TestRoutesAreSound: a Frontend routes somewhere or has a verdict; sets are of one
// family, never empty, sorted, and every one is routed to.
func TestRoutesAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		for _, svc := range rules.Compile(topology.Resolve(s, topology.Config{}), drawConfig(t)).Services {
			used := make([]bool, len(svc.Sets))
			for _, f := range svc.Frontends {
				caught := f.Verdict != rules.Pass
				for _, r := range f.Routes {
					used[r.Set] = true
					caught = caught || r.From == rules.Any
					if svc.Sets[r.Set].Endpoints[0].Addr().Is6() != f.Addr.Addr().Is6() {
						t.Fatalf("%v: %v is routed to the other family", svc.Name, f.Addr)
					}
				}
				if !caught {
					t.Fatalf("%v: packets to %v meet neither a route nor a verdict", svc.Name, f.Addr)
				}
			}
			if slices.Contains(used, false) {
				t.Fatalf("%v: a set without a route: %+v", svc.Name, svc)
			}
		}
	})
}
