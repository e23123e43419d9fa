package agreement

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestDeliberateError: the comparison finds closures that are broken, each in the way of a
// bug that the software of this field had. It must see the wrong packets, not only other
// rules.
func TestDeliberateError(t *testing.T) {
	requireNamespace(t)
	machines := newMachines(t)
	for name, broken := range map[string]closureFunc{
		"one endpoint of another unit is let in":                      letOneIn,
		"an empty label value is a unit (SuperEdge W-13)":             emptyValueIsUnit,
		"a slice belongs to the Service of its name (SuperEdge W-01)": sliceByName,
		"a malformed annotation opens the Service":                    malformedOpens,
		"the order of keys does not matter":                           unordered,
		"readiness before closure":                                    readyBeforeClosure,
		"a node without unit has its own endpoints":                   ownWithoutUnit,
	} {
		t.Run(name, func(t *testing.T) {
			for n := range uint64(defaultClusters) {
				c := Draw(1, n)
				result, err := machines.compareWith(c, broken)
				if err != nil {
					t.Fatal(err)
				}
				if len(result.Differences) > 0 && result.Differences[0].Kind == Packet {
					t.Logf("found in cluster %d: %s", n, result.Differences[0].What)
					return
				}
			}
			t.Errorf("%d clusters did not show it", defaultClusters)
		})
	}
}

// TestShrink: of a Cluster that shows an error little is left but the error.
func TestShrink(t *testing.T) {
	requireNamespace(t)
	machines := newMachines(t)
	differs := func(c Cluster) bool {
		result, err := machines.compareWith(c, letOneIn)
		if err != nil {
			t.Fatal(err)
		}
		return len(result.Differences) > 0 && result.Differences[0].Kind == Packet
	}
	for n := range uint64(defaultClusters) {
		c := Draw(1, n)
		if len(c.Services) < 4 || !differs(c) {
			continue
		}
		small := Shrink(c, differs)
		if !differs(small) {
			t.Fatalf("the smallest cluster does not differ:\n%s", small.Manifests())
		}
		endpoints := 0
		for _, slice := range small.Slices {
			endpoints += len(slice.Endpoints)
		}
		if len(small.Services) != 1 || len(small.Slices) != 1 || endpoints != 1 || len(small.Nodes) != 2 {
			t.Errorf("one Service, one endpoint and two nodes were enough:\n%s", small.Manifests())
		}
		if after := Draw(1, n); after.Manifests() != c.Manifests() {
			t.Error("shrinking changed the cluster it began with, or drawing it twice gave two")
		}
		return
	}
	t.Error("no cluster showed the error")
}

// letOneIn adds to every port the first ready endpoint that was left out for its unit.
func letOneIn(s topology.Snapshot, c topology.Config) topology.View {
	view := topology.Resolve(s, c)
	for i, port := range view.Ports {
		for _, drop := range view.Drops(port) {
			if drop.Reason == topology.ReasonOtherUnit && drop.Endpoint.Ready {
				changed := *port
				changed.Cluster = append(slices.Clone(port.Cluster), drop.Endpoint)
				view.Ports[i] = &changed
				break
			}
		}
	}
	return view
}

func emptyValueIsUnit(s topology.Snapshot, c topology.Config) topology.View {
	nodes := map[string]labels.Set{}
	for name, set := range s.Nodes {
		nodes[name] = maps.Clone(set)
		for key, value := range set {
			if value == "" {
				nodes[name][key] = "(empty)"
			}
		}
	}
	s.Nodes = nodes
	return topology.Resolve(s, c)
}

func sliceByName(s topology.Snapshot, c topology.Config) topology.View {
	s.Slices = slices.Clone(s.Slices)
	for i, slice := range s.Slices {
		if cut := strings.LastIndex(slice.Name, "-"); cut > 0 && slice.Service != "" {
			other := *slice
			other.Service = slice.Name[:cut]
			s.Slices[i] = &other
		}
	}
	return topology.Resolve(s, c)
}

// changeServices is a Snapshot whose Services went through change.
func changeServices(s topology.Snapshot, change func(*corev1.Service)) topology.Snapshot {
	s.Services = slices.Clone(s.Services)
	for i, svc := range s.Services {
		s.Services[i] = svc.DeepCopy()
		change(s.Services[i])
	}
	return s
}

func malformedOpens(s topology.Snapshot, c topology.Config) topology.View {
	return topology.Resolve(changeServices(s, func(svc *corev1.Service) {
		if _, _, ok := readKeys(svc.Annotations); !ok {
			delete(svc.Annotations, annotationKeys)
		}
	}), c)
}

func unordered(s topology.Snapshot, c topology.Config) topology.View {
	return topology.Resolve(changeServices(s, func(svc *corev1.Service) {
		if svc.Annotations[annotationPolicy] == "Ordered" && !strings.Contains(svc.Annotations[annotationKeys], "*") {
			delete(svc.Annotations, annotationPolicy)
		}
	}), c)
}

// readyBeforeClosure drops endpoints that are not ready first, so that a unit whose last
// endpoints terminate has none.
func readyBeforeClosure(s topology.Snapshot, c topology.Config) topology.View {
	s.Slices = slices.Clone(s.Slices)
	for i, slice := range s.Slices {
		if ready := func(e topology.SliceEndpoint) bool { return e.Ready }; slices.ContainsFunc(slice.Endpoints, ready) {
			other := *slice
			other.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), func(e topology.SliceEndpoint) bool { return !ready(e) })
			s.Slices[i] = &other
		}
	}
	return topology.Resolve(s, c)
}

func ownWithoutUnit(s topology.Snapshot, c topology.Config) topology.View {
	if c.NodesWithoutUnit != topology.WithoutUnitOpen {
		c.NodesWithoutUnit = topology.WithoutUnitLocal
	}
	return topology.Resolve(s, c)
}
