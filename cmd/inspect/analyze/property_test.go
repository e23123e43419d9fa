package analyze

import (
	"maps"
	"slices"
	"testing"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawConfig(t *rapid.T) Config {
	return Config{
		Namespace: rapid.SampledFrom([]string{"", "", "ns", "other"}).Draw(t, "namespace"),
		Topology: topology.Config{
			NodesWithoutUnit: rapid.SampledFrom([]topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "without unit"),
			ServiceProxyName: rapid.SampledFrom([]string{"", "", "other"}).Draw(t, "proxy name"),
		},
	}
}

// TestOrderDoesNotMatter: the same objects in another order have the same report, seen from any
// Node.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			s = topologytest.Change(t, s)
		}
		c := drawConfig(t)
		want := Analyze(s, c)
		shuffled := s
		shuffled.Node = rapid.SampledFrom([]string{"a", "b", "none"}).Draw(t, "seen from")
		shuffled.Services = rapid.Permutation(s.Services).Draw(t, "services")
		shuffled.Slices = rapid.Permutation(s.Slices).Draw(t, "slices")
		if diff := cmp.Diff(want, Analyze(shuffled, c)); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
	})
}

// TestRefusedUnitsAreFound: a Service with one key and one port has a finding about refused units
// if and only if explain says that it is refused on all Nodes of a unit.
func TestRefusedUnitsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		s.Watched, s.LastKeys = nil, nil
		c := drawConfig(t)
		c.Namespace = ""
		for i, svc := range s.Services {
			one := svc.DeepCopy()
			one.Spec.Ports = one.Spec.Ports[:1]
			s.Services[i] = one
		}
		r := Analyze(s, c)
		for _, svc := range s.Services {
			keys, _, err := topology.ParseKeys(svc.Annotations)
			if err != nil || len(keys) != 1 || keys[0] == topology.AnyEndpoint || !c.Topology.Served(svc) {
				continue
			}
			all, err := explain.OnNodes(s, c.Topology, explain.NameOf(svc))
			if err != nil {
				t.Fatal(err)
			}
			refused := map[string]bool{} // by unit: on all of its Nodes
			for _, on := range all {
				if value := s.Nodes[on.Node][keys[0]]; value != "" {
					before, known := refused[value]
					refused[value] = on.Answer == explain.Refused && (before || !known)
				}
			}
			want := slices.Contains(slices.Collect(maps.Values(refused)), true)
			got := slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return (f.Code == unitRefused || f.Code == refusedEverywhere) && f.Object.Name == svc.Name
			})
			if got != want {
				t.Fatalf("Service %s: a finding about units is %t; refused units: %v; findings: %v", svc.Name, got, refused, r.Findings)
			}
		}
	})
}
