package topology

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// relabelled is a Node whose labels have changed, or that has appeared or gone.
type relabelled struct {
	before, after labels.Set
	known         [2]bool // before and after
}

// concerns reports whether a decision by these keys may be another than before.
func (r relabelled) concerns(keys []string) bool {
	return r.known[0] != r.known[1] || slices.ContainsFunc(keys, r.differs)
}

func (r relabelled) differs(key string) bool { return r.before[key] != r.after[key] }

// takeNodes marks the Services about which labels may decide otherwise now. The decision about a
// Service reads the zone of this node, and the keys in force of this node and its endpoints' nodes.
func (m *tracker) takeNodes(s Snapshot) {
	if len(m.changed) == len(m.services) {
		return
	}
	m.takeWatched(s)
	if sameMap(m.snapshot.Nodes, s.Nodes) {
		return
	}
	nodes := m.relabelled(s)
	if len(nodes) == 0 {
		return
	}
	self := nodes[s.Node]
	for _, e := range m.services {
		switch keys := e.confined.keys; {
		case e.svc == nil:
		case self.differs(corev1.LabelTopologyZone),
			len(keys) > 0 && (self.concerns(keys) || e.isOn(nodes)):
			m.mark(e)
		}
	}
}

// takeWatched marks the Services that are decided otherwise if other keys are watched.
func (m *tracker) takeWatched(s Snapshot) {
	if EqualWatched(m.snapshot.Watched, s.Watched) {
		return
	}
	before, after := newObserver(m.snapshot, m.config), newObserver(s, m.config)
	for _, e := range m.services {
		if e.svc != nil && before.watchedPart(e.confined) != after.watchedPart(e.confined) {
			m.mark(e)
		}
	}
}

// relabelled returns, by name, the Nodes that came, went, or changed a label that counts.
func (m *tracker) relabelled(s Snapshot) map[string]relabelled {
	before := m.snapshot.Nodes
	keys := m.keysInForce()
	nodes := map[string]relabelled{}
	note := func(name string, r relabelled) {
		if r.known[0] != r.known[1] || r.anyOf(keys) || name == s.Node && r.differs(corev1.LabelTopologyZone) {
			nodes[name] = r
		}
	}
	for name, after := range s.Nodes {
		old, known := before[name]
		if !known || !sameMap(old, after) {
			note(name, relabelled{old, after, [2]bool{known, true}})
		}
	}
	for name, old := range before {
		if _, known := s.Nodes[name]; !known {
			note(name, relabelled{old, nil, [2]bool{true, false}})
		}
	}
	return nodes
}

// anyOf reports whether a label with one of the keys has changed. There may be many keys: tenants
// choose them.
func (r relabelled) anyOf(keys map[string]struct{}) bool {
	for _, set := range [...]labels.Set{r.before, r.after} {
		for key := range set {
			if _, found := keys[key]; found && r.differs(key) {
				return true
			}
		}
	}
	return false
}

func (m *tracker) keysInForce() map[string]struct{} {
	keys := map[string]struct{}{}
	for _, e := range m.services {
		for _, key := range e.confined.keys {
			keys[key] = struct{}{}
		}
	}
	return keys
}

// isOn reports whether an endpoint of the Service is on a Node whose change concerns its keys.
func (e *memory) isOn(nodes map[string]relabelled) bool {
	for _, slice := range e.slices {
		for i := range slice.Endpoints {
			if r, found := nodes[slice.Endpoints[i].Node]; found && r.concerns(e.confined.keys) {
				return true
			}
		}
	}
	return false
}

// sameMap reports whether a and b are the same map, or both nil. Then their content is the
// same, because a map of a Snapshot is never changed in place.
func sameMap[M ~map[K]V, K comparable, V any](a, b M) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}
