package matrix

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// TestCellsAreWhatExplainSays: a cell is what explain says of the Service for all Nodes of the unit
// together.
func TestCellsAreWhatExplainSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		s.Watched = nil
		choices := []topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}
		c := topology.Config{NodesWithoutUnit: rapid.SampledFrom(choices).Draw(t, "without unit")}
		m := New(s, c, s.Services)
		counted := map[string]int{}
		for i, u := range m.Units {
			members := nodesOf(s, m, u)
			if len(members) != u.Nodes || u.Nodes == 0 {
				t.Fatalf("unit %s has %d Nodes, want %v", u, u.Nodes, members)
			}
			for _, node := range members {
				counted[node]++
			}
			for n, svc := range s.Services {
				var all []string
				for _, node := range members {
					all = append(all, explained(t, s, c, keysAt(m, u), node, svc))
				}
				if got, want := textOf(m.Services[n].Cells[i]), together(all, "differs by node"); got != want {
					t.Fatalf("Service %s, unit %s: the cell says %s, explain says %s: %q for %v", m.Services[n].Service, u, got, want, all, members)
				}
			}
		}
		for node := range s.Nodes {
			if counted[node] == 0 {
				t.Fatalf("Node %s is in no row", node)
			}
		}
	})
}

// nodesOf are the Nodes in a unit; those of the last row are in no other.
func nodesOf(s topology.Snapshot, m Matrix, unit Unit) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Nodes)), func(node string) bool {
		if unit.Key != "" {
			return s.Nodes[node][unit.Key] != unit.Value
		}
		return slices.ContainsFunc(m.Units, func(u Unit) bool { return u.Key != "" && s.Nodes[node][u.Key] == u.Value })
	})
}

// textOf spells a Cell for comparison. No place has a "|".
func textOf(c *Cell) string {
	answer := string(c.Answer)
	if c.All {
		answer = "all " + answer
	}
	return strings.Join(append([]string{answer}, c.From...), "|")
}

// together is what several answers are as one.
func together(all []string, differ string) string {
	if all = slices.Compact(slices.Sorted(slices.Values(all))); len(all) == 1 {
		return all[0]
	}
	var from []string
	for _, text := range all {
		from = append(from, strings.Split(text, "|")[1:]...)
	}
	return strings.Join(append([]string{differ}, slices.Compact(slices.Sorted(slices.Values(from)))...), "|")
}

// explained is what explain says of a Service on one node, with the places of endpoints in terms of
// a unit's key.
func explained(t *rapid.T, s topology.Snapshot, c topology.Config, keys []string, node string, svc *corev1.Service) string {
	s.Node, s.Self = node, nil
	e, err := explain.Service(s, c, topology.Resolve(s, c), explain.NameOf(svc))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Ports) == 0 {
		return "no rules"
	}
	var everywhere, all []string
	for _, slice := range s.Slices {
		for _, ep := range slice.Endpoints {
			if slice.Namespace == svc.Namespace && slice.Service == svc.Name {
				everywhere = append(everywhere, place(s, keys, ep.Node))
			}
		}
	}
	everywhere = slices.Compact(slices.Sorted(slices.Values(everywhere)))
	local := *svc.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	for _, p := range e.Ports {
		var from []string
		own, elsewhere := local || e.OwnOnly, false
		for _, ep := range p.Endpoints {
			elsewhere = elsewhere || strings.Contains(ep.Reason, "internalTrafficPolicy is Local")
			if ep.Kept && (ep.Reason == "" || local && ep.Reason == "only for traffic policy Local") {
				from = append(from, place(s, keys, ep.Node))
				own = own && ep.Node == node
			}
		}
		from = slices.Compact(slices.Sorted(slices.Values(from)))
		answer := "answered"
		switch {
		case len(from) == 0 && elsewhere:
			answer = "dropped"
		case len(from) == 0:
			answer = "refused"
		case own:
			answer = "own node"
		case len(from) > 1 && slices.Equal(from, everywhere):
			answer = "all answered"
		}
		all = append(all, strings.Join(append([]string{answer}, from...), "|"))
	}
	return together(all, "differs by port")
}

func place(s topology.Snapshot, keys []string, node string) string {
	set, known := s.Nodes[node]
	var parts []string
	for _, key := range keys {
		if value := set[key]; value != "" && len(keys) > 1 {
			parts = append(parts, key+"="+value)
		} else if value != "" {
			parts = append(parts, value)
		}
	}
	switch {
	case !known:
		return "(unknown node)"
	case len(parts) == 0:
		return "(no unit)"
	default:
		return strings.Join(parts, ",")
	}
}

// keysAt returns the keys of the cells of a unit.
func keysAt(m Matrix, u Unit) []string {
	if u.Key != "" {
		return []string{u.Key}
	}
	var keys []string
	for _, u := range m.Units {
		if u.Key != "" && !slices.Contains(keys, u.Key) {
			keys = append(keys, u.Key)
		}
	}
	return keys
}

// service returns a Service whose annotation has keys.
func service(namespace, name, keys string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{topology.AnnotationKeys: keys}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// TestHintsForZones: Nodes of one unit in several zones have different answers, if hints say so.
func TestHintsForZones(t *testing.T) {
	hinted := func(addr, node, zone string) topology.SliceEndpoint {
		return topology.SliceEndpoint{Addr: netip.MustParseAddr(addr), Node: node, Ready: true, Serving: true, Hints: &topology.SliceHints{Zones: []string{zone}}}
	}
	open := service("ns", "open", "")
	open.Annotations = nil
	s := topology.Snapshot{
		Nodes: map[string]labels.Set{
			"a": {"location": "x", corev1.LabelTopologyZone: "1"}, "b": {"location": "x", corev1.LabelTopologyZone: "2"},
			"c": {"location": "y", corev1.LabelTopologyZone: "2"},
		},
		Services: []*corev1.Service{service("ns", "closed", `["location"]`), open},
		Slices: []*topology.Slice{{
			Namespace: "ns", Name: "open-1", Service: "open", Ports: []topology.SlicePort{{Protocol: corev1.ProtocolTCP, Number: 80}},
			Endpoints: []topology.SliceEndpoint{hinted("10.0.0.1", "a", "1"), hinted("10.0.0.2", "c", "2")},
		}},
	}
	var got []string
	for _, row := range New(s, topology.Config{}, s.Services).Services {
		for _, cell := range row.Cells {
			got = append(got, textOf(cell))
		}
	}
	if want := "refused; refused; differs by node|x|y; answered|y"; strings.Join(got, "; ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// TestUnitsOfServicesWithRules: keys of Services without rules make units only if no other Service
// is closed.
func TestUnitsOfServicesWithRules(t *testing.T) {
	web, db := service("ns", "web", `["location"]`), service("ns", "db", `["host"]`)
	db.Spec.ClusterIP = corev1.ClusterIPNone
	s := topology.Snapshot{Nodes: map[string]labels.Set{"a": {"location": "x", "host": "a"}, "b": {"location": "x", "host": "b"}}}
	for want, services := range map[string][]*corev1.Service{"location=x": {db, web}, "host=a host=b": {db}} {
		s.Services = services
		var units []string
		for _, u := range New(s, topology.Config{}, services).Units {
			units = append(units, u.String())
		}
		if got := strings.Join(units, " "); got != want {
			t.Errorf("units %s, want %s", got, want)
		}
	}
}
