package event

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// look is one Service as a node sees it at one moment.
type look struct {
	uid       string
	keys      []string
	malformed string
	ownOnly   bool
	warnings  []string
	usable    bool
	self      labels.Set
	others    map[string]labels.Set // the other Nodes
	gone      bool

	watched   map[string]bool // nil = all Nodes are known
	endpoints []string        // their nodes
}

// snapshot has all known Nodes.
func (l look) snapshot() topology.Snapshot {
	s := topology.Snapshot{Nodes: map[string]labels.Set{"n1": l.self}, Watched: l.watched}
	maps.Copy(s.Nodes, l.others)
	return s
}

// among is the same look, with another Node.
func (l look) among(name string, with labels.Set) look {
	l.others = map[string]labels.Set{name: with}
	return l
}

func (l look) view() topology.View {
	v := topology.View{Node: "n1"}
	if l.gone {
		return v
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: types.UID(l.uid)}}
	slice := &topology.Slice{}
	for _, node := range l.endpoints {
		slice.Endpoints = append(slice.Endpoints, topology.SliceEndpoint{Node: node})
	}
	for _, port := range []string{"a", "b"} {
		sp := &topology.ServicePort{
			Name:    topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}, Port: port},
			Service: svc, Warnings: l.warnings,
			Closure: topology.Closure{Keys: l.keys, Malformed: l.malformed, OwnOnly: l.ownOnly},
			Slices:  []*topology.Slice{slice},
		}
		if l.usable && port == "b" {
			sp.Cluster = []topology.Endpoint{{}}
		}
		v.Ports = append(v.Ports, sp)
	}
	return v
}

// reports runs Next over some looks in order, and lists the Events, with "log" before those that
// are only logged.
func reports(looks ...look) []string {
	said := []string{}
	var state State
	for _, l := range looks {
		var events []Event
		state, events = Next(state, l.snapshot(), l.view())
		for _, e := range events {
			said = append(said, marked(e, e.Reason))
		}
	}
	return said
}

// marked returns a text about an Event, with "log" before it if the Event is only logged.
func marked(e Event, text string) string {
	if e.LogOnly {
		return "log " + text
	}
	return text
}

func TestNext(t *testing.T) {
	zone := []string{"zone"}
	x, y := labels.Set{"zone": "x"}, labels.Set{"zone": "y"}
	full := look{keys: zone, self: x, usable: true}
	empty := look{keys: zone, self: x}
	bad := look{keys: zone, self: x, usable: true, malformed: "not JSON"}
	created := look{self: x, ownOnly: true, malformed: "not JSON"}
	for _, test := range []struct {
		name  string
		looks []look
		want  []string
	}{
		{"a unit that is empty from the start has lost nothing", []look{empty, empty}, nil},
		{"the last endpoint goes", []look{full, empty}, []string{ReasonUnitNoEndpoint}},
		{"only once", []look{full, empty, empty, empty}, []string{ReasonUnitNoEndpoint}},
		{"again after it came back", []look{full, empty, full, empty}, []string{ReasonUnitNoEndpoint, ReasonUnitNoEndpoint}},
		{"this node moved into an empty unit", []look{full, {keys: zone, self: y}}, nil},
		{"this node is in no unit", []look{{keys: zone, usable: true}, {keys: zone}}, nil},
		{"the Service went", []look{full, {gone: true}}, nil},
		{"another Service of the same name", []look{full, {uid: "2", keys: zone, self: x}}, nil},
		{"an ordinary Service lost its endpoints", []look{{self: x, usable: true}, {self: x}}, nil},
		{"malformed at the start", []look{bad, bad}, []string{"log " + ReasonMalformed}},
		{"becomes malformed", []look{full, bad, bad}, []string{ReasonMalformed}},
		{"malformed in another way", []look{full, bad, {keys: zone, self: x, usable: true, malformed: "a list"}}, []string{ReasonMalformed, ReasonMalformed}},
		{"mended and broken again", []look{full, bad, full, bad}, []string{ReasonMalformed, ReasonMalformed}},
		{"malformed, this node is in no unit of it", []look{full, {keys: zone, usable: true, malformed: "not JSON"}}, []string{"log " + ReasonMalformed}},
		{"malformed, another Node is the unit's voice", []look{full, bad.among("n0", x)}, []string{"log " + ReasonMalformed}},
		{"malformed, this Node is the first of its unit", []look{full, bad.among("n0", y)}, []string{ReasonMalformed}},
		{"malformed, one voice for the unit", []look{full, bad.among("n2", x)}, []string{ReasonMalformed}},
		{"malformed, each keeps to itself as it is in no unit", []look{full, {keys: zone, ownOnly: true, usable: true, malformed: "not JSON"}}, []string{"log " + ReasonMalformed}},
		{"the last endpoint goes, whichever Node is the first", []look{full, empty.among("n0", x)}, []string{ReasonUnitNoEndpoint}},
		{"created malformed", []look{{gone: true}, created}, []string{ReasonMalformed}},
		{"created malformed, one voice for all units", []look{{gone: true}, created.among("n0", y)}, []string{"log " + ReasonMalformed}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(append([]string{}, test.want...), reports(test.looks...)); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	x := topology.Snapshot{Nodes: map[string]labels.Set{"n1": {"zone": "x"}}}
	full := look{keys: []string{"zone"}, usable: true}
	state, _ := Next(State{}, x, full.view())
	_, events := Next(state, x, look{keys: []string{"zone"}}.view())
	want := "node n1: unit zone=x has no usable endpoint any more; connections to the Service are refused there"
	if len(events) != 1 || events[0].Message != want {
		t.Errorf("got %v, want %q", events, want)
	}
	_, events = Next(state, x, look{ownOnly: true, usable: true, malformed: "annotation topologyKeys is bad"}.view())
	want = "node n1: annotation topologyKeys is bad; until it is corrected, each node uses only its own endpoints"
	if len(events) != 1 || events[0].Message != want {
		t.Errorf("got %v, want %q", events, want)
	}
}

// TestMovedNode: a node that moved reports for its new unit, even if nothing else changed.
func TestMovedNode(t *testing.T) {
	y := topology.Snapshot{Nodes: map[string]labels.Set{"n1": {"zone": "y"}}}
	full := look{keys: []string{"zone"}, usable: true}.view()
	state, _ := Next(State{}, topology.Snapshot{Nodes: map[string]labels.Set{"n1": {"zone": "x"}}}, full)
	state, _ = Next(state, y, full)
	_, events := Next(state, y, look{keys: []string{"zone"}}.view())
	if len(events) != 1 || !strings.Contains(events[0].Message, "unit zone=y") {
		t.Errorf("got %v, want one Event about zone=y", events)
	}
}

// TestOneVoice: if all nodes of two units see the same mistake, two nodes send an Event.
func TestOneVoice(t *testing.T) {
	fleet := map[string]labels.Set{"cloud": nil}
	for _, name := range []string{"a1", "a2", "a3", "b1", "b2"} {
		fleet[name] = labels.Set{"zone": name[:1]}
	}
	var voices []string
	for node := range fleet {
		full := look{keys: []string{"zone"}, usable: true}.view()
		bad := look{keys: []string{"zone"}, usable: true, malformed: "not JSON"}.view()
		full.Node, bad.Node = node, node
		state, _ := Next(State{}, topology.Snapshot{Nodes: fleet}, full)
		_, events := Next(state, topology.Snapshot{Nodes: fleet}, bad)
		if len(events) != 1 {
			t.Fatalf("node %s reports %v, want one thing", node, events)
		}
		if !events[0].LogOnly {
			voices = append(voices, node)
		}
	}
	slices.Sort(voices)
	if diff := cmp.Diff([]string{"a1", "b1"}, voices); diff != "" {
		t.Errorf("voices (-want +got):\n%s", diff)
	}
}

// TestSenderAmongUnits: with Nodes of this node's units alone, a mistake that concerns no unit is
// sent by the first node with an endpoint of the Service, once there is one.
func TestSenderAmongUnits(t *testing.T) {
	units := func(l look, keys ...string) look {
		l.watched, l.self = map[string]bool{}, labels.Set{"zone": "x"}
		for _, key := range keys {
			l.watched[key] = true
		}
		return l
	}
	good := units(look{usable: true})
	bad := units(look{usable: true, ownOnly: true, malformed: "not JSON"})
	odd := units(look{usable: true, warnings: []string{"one"}})
	at := func(l look, nodes ...string) look { l.endpoints = nodes; l.uid = "same"; return l }
	closed := look{usable: true, keys: []string{"zone"}, malformed: "not JSON"}
	for _, test := range []struct {
		name  string
		looks []look
		want  []string
	}{
		{"the first endpoint is here", []look{at(good), at(bad, "n2", "n1")}, []string{ReasonMalformed}},
		{"it is elsewhere", []look{at(good), at(bad, "n2", "n0"), at(bad, "n2")}, []string{"log " + ReasonMalformed}},
		{"no endpoint yet, then here", []look{at(good), at(bad), at(bad), at(bad, "n1"), at(bad, "n1")}, []string{"log " + ReasonMalformed, ReasonMalformed}},
		{"no endpoint yet, then elsewhere, then here", []look{at(good), at(bad), at(bad, "n0"), at(bad, "n1")}, []string{"log " + ReasonMalformed}},
		{"no endpoint yet, and corrected", []look{at(good), at(bad), at(good), at(good, "n1")}, []string{"log " + ReasonMalformed}},
		{"ignored fields", []look{at(good), at(odd), at(odd, "n1")}, []string{"log " + ReasonIgnored, ReasonIgnored}},
		{"from the start", []look{at(bad), at(bad, "n1")}, []string{"log " + ReasonMalformed}},
		{"a unit whose Nodes are known", []look{units(good, "zone"), units(closed, "zone")}, []string{ReasonMalformed}},
		{"a unit with another first Node", []look{units(good, "zone"), units(closed, "zone").among("n0", labels.Set{"zone": "x"})}, []string{"log " + ReasonMalformed}},
		{"a unit whose Nodes are not known yet", []look{units(good), units(closed)}, []string{"log " + ReasonMalformed}},
	} {
		if diff := cmp.Diff(test.want, reports(test.looks...)); diff != "" {
			t.Errorf("%s: reported (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestSenderIsKnownLater: an Event is sent once the Nodes of its unit are known, although nothing
// else changes.
func TestSenderIsKnownLater(t *testing.T) {
	bad := look{usable: true, keys: []string{"zone"}, malformed: "not JSON"}.view()
	s := topology.Snapshot{Nodes: map[string]labels.Set{"n1": {"zone": "x"}}, Watched: map[string]bool{}}
	state, _ := Next(State{begun: true}, s, bad)
	s.Watched = map[string]bool{"zone": true}
	state, events := Next(state, s, bad)
	if len(events) != 1 || events[0].LogOnly || events[0].Reason != ReasonMalformed {
		t.Errorf("once the unit's Nodes are known: %v, want one %s that is sent", events, ReasonMalformed)
	}
	if s.Watched = map[string]bool{}; len(state.unsent) != 0 {
		t.Errorf("%v is still to be sent", state.unsent)
	}
	if _, events = Next(state, s, bad); len(events) != 0 {
		t.Errorf("sent again: %v", events)
	}
}

// TestIgnoredFields: one node reports the ignored fields of a Service, once.
func TestIgnoredFields(t *testing.T) {
	plain := look{usable: true}
	odd := look{usable: true, warnings: []string{"externalIPs \"x\" is not an IP address; it is ignored", "another"}}
	for _, test := range []struct {
		name  string
		looks []look
		want  []string
	}{
		{"an ordinary Service", []look{plain, odd, odd, odd}, []string{ReasonIgnored}},
		{"from the start", []look{odd, odd}, []string{"log " + ReasonIgnored}},
		{"another Node is the first", []look{plain, odd.among("n0", nil)}, []string{"log " + ReasonIgnored}},
		{"corrected, and again", []look{plain, odd, plain, odd}, []string{ReasonIgnored, ReasonIgnored}},
		{"nothing is ignored", []look{plain, plain}, nil},
	} {
		if diff := cmp.Diff(append([]string{}, test.want...), reports(test.looks...)); diff != "" {
			t.Errorf("%s: reported (-want +got):\n%s", test.name, diff)
		}
	}
	state, _ := Next(State{}, plain.snapshot(), plain.view())
	_, events := Next(state, odd.snapshot(), odd.view())
	want := `node n1: externalIPs "x" is not an IP address; it is ignored; gridproxy explain ns/web prints 1 more`
	if len(events) != 1 || events[0].Message != want {
		t.Errorf("got %v, want %q", events, want)
	}
}

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

// copied returns a View that shares no pointer to a port with v.
func copied(v topology.View) topology.View {
	ports := v.Ports
	v.Ports = nil
	for _, sp := range ports {
		port := *sp
		v.Ports = append(v.Ports, &port)
	}
	return v
}
