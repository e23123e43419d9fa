package event

import (
	"net/netip"
	"slices"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// TestLoserOfAnAddressIsTold: the Service that asks for another one's address gets one Event, from
// one node, that names the other Service.
func TestLoserOfAnAddressIsTold(t *testing.T) {
	name := func(n string) topology.ServicePortName {
		return topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "ns", Name: n}}
	}
	v := topology.View{Node: "n1"}
	for _, n := range []string{"thief", "victim"} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: n}}
		v.Ports = append(v.Ports, &topology.ServicePort{Name: name(n), Service: svc})
	}
	lost := func(port uint16) rules.AddressConflict {
		return rules.AddressConflict{
			Service: name("thief"), Kind: rules.ExternalIP, Addr: netip.AddrPortFrom(netip.MustParseAddr("203.0.113.7"), port),
			Holder: name("victim"), Held: rules.LoadBalancer,
		}
	}
	one, two, none := []rules.AddressConflict{lost(80)}, []rules.AddressConflict{lost(80), lost(81)}, []rules.AddressConflict{}
	const about80 = "node n1: externalIPs 203.0.113.7:80/TCP has no effect: Service ns/victim has the address in status.loadBalancer"
	alone := map[string]labels.Set{"n1": nil}
	for _, tc := range []struct {
		name  string
		nodes map[string]labels.Set
		looks [][]rules.AddressConflict
		want  []string
	}{
		{"it begins", alone, [][]rules.AddressConflict{none, one, one}, []string{about80}},
		{"it was so at the start", alone, [][]rules.AddressConflict{one, one}, []string{"log " + about80}},
		{"it ends and begins again", alone, [][]rules.AddressConflict{none, one, none, one}, []string{about80, about80}},
		{"another address too", alone, [][]rules.AddressConflict{none, one, two, two}, []string{about80, about80 + "; 1 more: gridproxy explain lists them"}},
		{"another node speaks for all", map[string]labels.Set{"n0": nil, "n1": nil}, [][]rules.AddressConflict{none, one}, []string{"log " + about80}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var state ConflictState
			var got []string
			for _, conflicts := range tc.looks {
				var events []Event
				state, events = NextConflicts(state, topology.Snapshot{Nodes: tc.nodes}, v, conflicts)
				for _, e := range events {
					if e.Service.Name != "thief" || e.Reason != ReasonAddressConflict {
						t.Errorf("reported %s of Service %s, want %s of thief", e.Reason, e.Service.Name, ReasonAddressConflict)
					}
					got = append(got, marked(e, e.Message))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConflictWaitsForItsSender: with Nodes of this node's units alone, a conflict is sent once the
// Service has an endpoint, by the first node with one.
func TestConflictWaitsForItsSender(t *testing.T) {
	lost := topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "thief"}}
	conflicts := []rules.AddressConflict{{Service: lost, Kind: rules.ExternalIP, Addr: netip.MustParseAddrPort("203.0.113.7:80"), Held: rules.ExternalIP}}
	view := func(node ...string) topology.View {
		var slices []*topology.Slice
		for i, name := range node {
			read := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
			read.Labels = map[string]string{discoveryv1.LabelServiceName: "thief"}
			read.Endpoints = []discoveryv1.Endpoint{{NodeName: &name, Addresses: []string{"10.0.0.1"}}}
			if i == 0 {
				read.Endpoints[0].Addresses[0] = "unreadable" // whoever warns of it must be found, too
			}
			slices = append(slices, topology.NewSlice(read))
		}
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "thief"}}
		return topology.View{Node: "n1", Ports: []*topology.ServicePort{{Name: lost, Service: svc, Slices: slices}}}
	}
	s := topology.Snapshot{Nodes: map[string]labels.Set{"n1": nil}, Watched: map[string]bool{}}
	for _, tc := range []struct {
		name  string
		views []topology.View
		want  []bool // by Event: it is only logged
	}{
		{"no endpoint yet, then here", []topology.View{view(), view(), view("n1"), view("n1")}, []bool{true, false}},
		{"no endpoint yet, then elsewhere, then here", []topology.View{view(), view("n0"), view("n1")}, []bool{true}},
	} {
		state, _ := NextConflicts(ConflictState{}, s, view(), nil)
		var got []bool
		for _, v := range tc.views {
			var events []Event
			state, events = NextConflicts(state, s, v, conflicts)
			for _, e := range events {
				got = append(got, e.LogOnly)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: Events that are only logged: %v, want %v", tc.name, got, tc.want)
		}
	}
}
