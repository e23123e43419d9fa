package watch

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// history is a cluster whose Nodes change, and a node that watches it. Each watch is at a position
// of the history of its own.
type history struct {
	t      *rapid.T
	config topology.Config
	keys   []string // that Nodes may carry

	written  bool // the kernel holds rules
	now      time.Time
	past     []map[string]labels.Set // all Nodes at each position
	services []*corev1.Service
	slices   []*topology.Slice

	self      int          // the position of the watch for this Node
	selfSince time.Time    // when the labels of this Node last changed there
	at        map[unit]int // by watch that is complete
	named     namedKeys
	plan      unitPlan
	lastKeys  map[types.UID][]string
	previous  topology.Snapshot // the last whole one
}

const me = "a"

func newHistory(t *rapid.T) *history {
	h := &history{t: t, now: time.Unix(1, 0), past: []map[string]labels.Set{{}}, at: map[unit]int{}}
	h.written = rapid.Bool().Draw(t, "written")
	h.config.NodesWithoutUnit = rapid.SampledFrom([]topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "without unit")
	for i := range rapid.SampledFrom([]int{2, 3, unitsMax + 2}).Draw(t, "keys") {
		h.keys = append(h.keys, fmt.Sprintf("k%d", i))
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		h.changeNode(name)
	}
	for i := range 3 {
		h.changeService(i)
	}
	return h
}

func (h *history) truth() map[string]labels.Set { return h.past[len(h.past)-1] }

// changeNode changes one label of a Node, or deletes or creates the Node.
func (h *history) changeNode(name string) {
	next := maps.Clone(h.truth())
	set, exists := next[name]
	switch {
	case !exists:
		set = labels.Set{}
		for _, key := range h.keys {
			set[key] = rapid.SampledFrom([]string{"x", "x", "y"}).Draw(h.t, "value")
		}
		next[name] = set
	case rapid.IntRange(0, 5).Draw(h.t, "delete") == 0:
		delete(next, name)
	default:
		set = maps.Clone(set)
		for range rapid.IntRange(1, 2).Draw(h.t, "labels") {
			set[rapid.SampledFrom(h.keys).Draw(h.t, "key")] = rapid.SampledFrom([]string{"x", "x", "y", ""}).Draw(h.t, "value")
		}
		next[name] = set
	}
	h.past = append(h.past, next)
}

// changeService replaces a Service and its endpoints.
func (h *history) changeService(i int) {
	name := fmt.Sprintf("svc%d", i)
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{}},
		Spec:       corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.96.0.%d", i+1), Ports: []corev1.ServicePort{{Port: 80}}},
	}
	key := func() string { return rapid.SampledFrom(h.keys).Draw(h.t, "key") }
	text := rapid.SampledFrom([]string{
		fmt.Sprintf(`[%q]`, key()), fmt.Sprintf(`[%q,%q]`, key(), key()), fmt.Sprintf(`[%q,"*"]`, key()), fmt.Sprintf(`[%q,%q,"*"]`, key(), key()),
		`broken`, `[]`, h.everyKey(), h.everyKey(),
	}).Draw(h.t, "annotation")
	svc.Annotations[topology.AnnotationKeys] = text
	if rapid.Bool().Draw(h.t, "ordered") {
		svc.Annotations[topology.AnnotationPolicy] = string(topology.PolicyOrdered)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
	}
	for n := range rapid.IntRange(1, 4).Draw(h.t, "endpoints") {
		node := rapid.SampledFrom([]string{"a", "b", "b", "c", "c", "d", "ghost"}).Draw(h.t, "node")
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, n+1)}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: new(rapid.IntRange(0, 3).Draw(h.t, "ready") > 0)},
		})
	}
	h.services = replaced(h.services, svc)
	h.slices = replaced(h.slices, topology.NewSlice(slice))
}

// everyKey names all keys at once.
func (h *history) everyKey() string { return `["` + strings.Join(h.keys, `","`) + `"]` }

func replaced[T topology.Object](all []T, o T) []T {
	all = slices.DeleteFunc(slices.Clone(all), func(old T) bool { return old.GetName() == o.GetName() })
	all = append(all, o)
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// act is one thing that happens.
func (h *history) act() {
	actions := []string{"node", "node", "self", "service", "remove", "complete", "deliver", "deliver", "deliver", "deliver self", "time"}
	switch rapid.SampledFrom(actions).Draw(h.t, "action") {
	case "node":
		h.changeNode(rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(h.t, "name"))
	case "self":
		h.changeNode(me)
	case "service":
		h.changeService(rapid.IntRange(0, 2).Draw(h.t, "service"))
	case "remove":
		gone := fmt.Sprintf("svc%d", rapid.IntRange(0, 2).Draw(h.t, "service"))
		h.services = slices.DeleteFunc(slices.Clone(h.services), func(s *corev1.Service) bool { return s.Name == gone })
	case "complete":
		if u, found := h.drawWatch(); found {
			if _, complete := h.at[u]; !complete {
				h.at[u] = len(h.past) - 1
			}
		}
	case "deliver":
		if u, found := h.drawWatch(); found {
			if pos, complete := h.at[u]; complete {
				h.at[u] = rapid.IntRange(pos, len(h.past)-1).Draw(h.t, "position")
			}
		}
	case "deliver self":
		h.deliverSelf(rapid.IntRange(h.self, len(h.past)-1).Draw(h.t, "position"))
	case "time":
		h.now = h.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, HoldLimit}).Draw(h.t, "time"))
	}
}

func (h *history) deliverSelf(position int) {
	before, after := h.past[h.self][me], h.past[position][me]
	if !maps.Equal(before, after) {
		h.selfSince = h.now
	}
	h.self = position
}

func (h *history) drawWatch() (unit, bool) {
	all := slices.SortedFunc(maps.Keys(h.plan.watches), compareUnits)
	if len(all) == 0 {
		return unit{}, false
	}
	return rapid.SampledFrom(all).Draw(h.t, "watch"), true
}

// holds is what a complete watch holds.
func (h *history) holds(u unit) map[string]labels.Set {
	held := maps.Clone(h.past[h.at[u]])
	maps.DeleteFunc(held, func(_ string, set labels.Set) bool { return !u.has(set) })
	return held
}

// snapshot plans, and forms a Snapshot as Cluster does.
func (h *history) snapshot() (topology.Snapshot, bool) {
	own, exists := h.past[h.self][me]
	h.named.follow(h.services)
	h.plan = h.plan.next(facts{
		now: h.now, labels: own, exists: exists, named: h.named.names, size: h.size,
		complete: func(u unit) bool { _, is := h.at[u]; return is }, written: func() bool { return h.written },
	})
	maps.DeleteFunc(h.at, func(u unit, _ int) bool { _, runs := h.plan.watches[u]; return !runs })
	var complete []unitNodes
	for _, u := range slices.SortedFunc(maps.Keys(h.plan.watches), compareUnits) {
		if h.plan.watches[u].complete {
			complete = append(complete, unitNodes{u, objects(h.holds(u))})
		}
	}
	s := topology.Snapshot{Node: me, Services: h.services, Slices: h.slices, LastKeys: h.lastKeys, Nodes: join(complete), Watched: h.plan.watched()}
	delete(s.Nodes, me)
	if h.plan.exists {
		s.Nodes[me] = h.plan.labels
	}
	return s, h.plan.whole
}

func objects(nodes map[string]labels.Set) []*metav1.PartialObjectMetadata {
	var all []*metav1.PartialObjectMetadata
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		all = append(all, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: nodes[name]}})
	}
	return all
}

// size is that of a large cluster: units of some keys have many Nodes.
func (h *history) size(u unit) int {
	if u.key < "k2" {
		return unitNodesMax/2 + 1
	}
	return 1
}

// look takes a Snapshot and checks what must hold at any moment.
func (h *history) look() {
	s, whole := h.snapshot()
	if n := len(h.plan.watches); n > 2*unitsMax+1 {
		h.t.Fatalf("%d watches", n)
	}
	if !whole {
		return
	}
	view := topology.Resolve(s, h.config)
	h.lastKeys = view.LastKeys
	own, exists := s.Nodes[me]
	if exists && !slices.ContainsFunc(h.past[:h.self+1], func(then map[string]labels.Set) bool { return maps.Equal(then[me], own) }) {
		h.t.Fatalf("this Node never had the labels %v", own)
	}
	for _, sp := range view.Ports {
		h.checkInside(s, sp)
		h.checkPreferred(s, sp)
	}
	h.checkCovered(s)
	h.previous = s
}

// inUnit reports whether a watch says that a Node has this Node's value of a key, and none says
// anything else.
func (h *history) inUnit(own labels.Set, key, node string) bool {
	if own[key] == "" || node == me {
		return own[key] != ""
	}
	for u, w := range h.plan.watches {
		if w.complete && h.holds(u)[node][key] == own[key] {
			return h.allSay(own, key, node)
		}
	}
	return false
}

// checkInside: no endpoint is outside the unit that this Node's labels name in the Snapshot.
func (h *history) checkInside(s topology.Snapshot, sp *topology.ServicePort) {
	own, exists := s.Nodes[me]
	c := sp.Closure
	hasUnit := slices.ContainsFunc(c.Keys, func(key string) bool { return own[key] != "" })
	if !c.Closed() || exists && !hasUnit && h.config.NodesWithoutUnit == topology.WithoutUnitOpen || c.KeyInUse == topology.AnyEndpoint {
		return
	}
	for _, e := range slices.Concat(sp.Cluster, sp.Local) {
		inside := slices.ContainsFunc(c.Keys, func(key string) bool { return exists && h.inUnit(own, key, e.Node) })
		if !inside && !(c.OwnOnly && e.Node == me) {
			h.t.Fatalf("%s: %s on %s is outside; labels %v, closure %+v", sp.Name, e.Addr, e.Node, own, c)
		}
	}
}

// checkPreferred: no key of an Ordered list is in use while an endpoint of an earlier key is ready,
// or may be.
func (h *history) checkPreferred(s topology.Snapshot, sp *topology.ServicePort) {
	own := s.Nodes[me]
	if sp.Closure.Policy != topology.PolicyOrdered || sp.Closure.KeyInUse == "" {
		return
	}
	for _, key := range sp.Closure.Keys[:slices.Index(sp.Closure.Keys, sp.Closure.KeyInUse)] {
		if own[key] == "" {
			continue
		}
		if s.Watched != nil && !s.Watched[key] {
			h.t.Fatalf("%s: key %s is in use before it is known who has %s=%s", sp.Name, sp.Closure.KeyInUse, key, own[key])
		}
		for _, e := range topology.Endpoints(s, sp.Name) {
			if e.Ready && h.allSay(own, key, e.Node) {
				h.t.Fatalf("%s: key %s is in use although %s on %s has %s=%s", sp.Name, sp.Closure.KeyInUse, e.Addr, e.Node, key, own[key])
			}
		}
	}
}

// allSay reports whether all watches agree that a Node has this Node's value of a key.
func (h *history) allSay(own labels.Set, key, node string) bool {
	if node == me {
		return true
	}
	for u, w := range h.plan.watches {
		set, held := h.holds(u)[node]
		expected := u.every() || u == unit{key, own[key]}
		if w.complete && (held && set[key] != own[key] || !held && expected) {
			return false
		}
	}
	return true
}

// checkCovered: what was known of a unit stays known, whatever changes, and so does the unit that
// takes its place.
func (h *history) checkCovered(s topology.Snapshot) {
	if h.previous.Nodes == nil || s.Watched == nil {
		return
	}
	before, existed := h.previous.Nodes[me]
	own := s.Nodes[me]
	for _, key := range h.keys {
		was := existed && before[key] != "" && (h.previous.Watched == nil || h.previous.Watched[key])
		late := h.now.Sub(h.selfSince) >= HoldLimit || own[key] != before[key] && before[key] == ""
		if was && own[key] != "" && h.named.names(key) && !s.Watched[key] && !late {
			h.t.Fatalf("%s=%s was watched completely, %s=%s is not", key, before[key], key, own[key])
		}
	}
}

// settle lets every watch read everything.
func (h *history) settle() {
	for range unitsMax + 4 { // units of unknown size are read one after the other
		h.deliverSelf(len(h.past) - 1)
		for u := range h.plan.watches {
			h.at[u] = len(h.past) - 1
		}
		h.look()
	}
}

// checkQuiet: the result is the one of a watch for all Nodes.
func (h *history) checkQuiet() {
	selected, _ := h.snapshot()
	full := selected
	full.Nodes, full.Watched = h.truth(), nil
	if diff := cmp.Diff(used(full, h.config), used(selected, h.config), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		h.t.Fatalf("the watched units differ from all Nodes (-all +units):\n%s", diff)
	}
}

// used is a View without the reasons for what is left out; their counts are added up.
func used(s topology.Snapshot, c topology.Config) []topology.ServicePort {
	var all []topology.ServicePort
	for _, sp := range topology.Resolve(s, c).Ports {
		one := *sp
		one.Service, one.Slices, one.Closure.LeftOut = nil, nil, []topology.ReasonCount{{}}
		for _, r := range sp.Closure.LeftOut {
			one.Closure.LeftOut[0].Count += r.Count
		}
		all = append(all, one)
	}
	return all
}

// TestUnitHistories: over random histories of labels, Services and watches, no endpoint outside the
// unit is used at any moment, and once it is quiet the result is the one of a watch for all Nodes.
func TestUnitHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		h.look()
		if rapid.Bool().Draw(t, "warm") {
			h.settle()
		}
		for range rapid.IntRange(1, 25).Draw(t, "actions") {
			h.act()
			h.look()
		}
		h.settle()
		h.checkQuiet()
		h.now = h.now.Add(lingering)
		h.settle()
		h.now = h.now.Add(lingering)
		h.settle()
		h.checkQuiet()
		want := unitsOf(h.truth()[me], h.named.names)
		size := 0
		for _, u := range want {
			size += h.size(u)
		}
		if len(want) > unitsMax || size > unitNodesMax && len(want) > 1 {
			want = []unit{{}}
		}
		if got := slices.SortedFunc(maps.Keys(h.plan.watches), compareUnits); !slices.Equal(got, want) {
			t.Fatalf("watches %v remain, want %v", got, want)
		}
	})
}
