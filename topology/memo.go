package topology

import (
	"maps"
	"slices"

	"gridproxy/topology/changes"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memo remembers the last View and decides only about the Services whose inputs have changed since.
// The zero value is ready for use. One goroutine may use it.
//
// Its Resolve always equals the function Resolve. A ServicePort whose inputs did not change is the
// same pointer as before. What changed is found by identity, as the Snapshot promises it: a run
// costs a pass over the pointers of the Snapshot's lists, and the decisions about what changed.
type Memo struct {
	snapshot  Snapshot // which view is of
	config    Config
	view      View
	services  map[types.NamespacedName]*memory
	malformed map[*memory]struct{} // those whose annotations cannot be read: LastKeys count
	changed   []*memory            // in the run in progress
}

// memory is what the decision about one Service is made from, besides the labels of Nodes.
type memory struct {
	name     types.NamespacedName
	svc      *corev1.Service // nil = only EndpointSlices name it
	confined confinement     // as read from svc
	slices   []*Slice
	changed  bool // it is in Memo.changed

	gone map[*Slice]struct{} // in the run in progress: those to leave out of slices
	come []*Slice            // and those to take in, sorted
}

// Resolve is the function Resolve, faster.
func (m *Memo) Resolve(s Snapshot, c Config) View {
	if m.services == nil || s.Node != m.snapshot.Node || c != m.config {
		*m = Memo{
			config: c, services: make(map[types.NamespacedName]*memory, len(s.Services)), malformed: map[*memory]struct{}{},
			view: View{LastKeys: map[types.UID][]string{}},
		}
	}
	keys := m.takeServices(s)
	m.takeSlices(s)
	m.takeProbed(s)
	m.takeNodes(s)
	view := newView(s, c)
	view.LastKeys = changedKeys(m.view.LastKeys, keys)
	view.Ports = m.decide(newObserver(s, c))
	m.snapshot, m.view = s, view
	return view
}

// memory is that of a Service, of which something changed.
func (m *Memo) memory(name types.NamespacedName) *memory {
	e := m.services[name]
	if e == nil {
		e = &memory{name: name}
		m.services[name] = e
	}
	m.mark(e)
	return e
}

func (m *Memo) mark(e *memory) {
	if !e.changed {
		e.changed = true
		m.changed = append(m.changed, e)
	}
}

// takeServices returns the keys by which LastKeys change; none = the UID has no entry.
func (m *Memo) takeServices(s Snapshot) map[types.UID][]string {
	keys := map[types.UID][]string{}
	for old := range changes.Between(m.snapshot.Services, s.Services, CompareObjects) {
		if old != nil { // before any other: the UID may be another Service's by now
			e := m.memory(nameOf(old))
			e.svc, e.confined, keys[old.UID] = nil, confinement{}, nil
			delete(m.malformed, e)
		}
	}
	for _, now := range changes.Between(m.snapshot.Services, s.Services, CompareObjects) {
		if now != nil {
			e := m.memory(nameOf(now))
			e.svc = now
			m.confine(e, s.LastKeys[now.UID])
			keys[now.UID] = e.confined.keys
		}
	}
	for e := range m.malformed {
		if last := s.LastKeys[e.svc.UID]; !slices.Equal(last, e.confined.keys) {
			m.mark(e)
			m.confine(e, last)
			keys[e.svc.UID] = e.confined.keys
		}
	}
	return keys
}

func (m *Memo) confine(e *memory, lastKeys []string) {
	e.confined = confine(e.svc, lastKeys)
	if e.confined.malformed != "" {
		m.malformed[e] = struct{}{}
	}
}

// changedKeys are LastKeys with some changes. Without any it is the same map.
func changedKeys(last, changes map[types.UID][]string) map[types.UID][]string {
	copied := false
	for uid, keys := range changes {
		if slices.Equal(last[uid], keys) {
			continue
		}
		if !copied {
			last, copied = copyOf(last), true
		}
		last[uid] = keys
		if len(keys) == 0 {
			delete(last, uid)
		}
	}
	return last
}

// copyOf is as large as the entries are, which maps.Clone is not: it keeps the room of entries that
// were deleted.
func copyOf(all map[types.UID][]string) map[types.UID][]string {
	fresh := make(map[types.UID][]string, len(all))
	maps.Copy(fresh, all)
	return fresh
}

// takeSlices collects what changes for each Service and merges it once: one Service may have as
// many slices as anybody cares to create.
func (m *Memo) takeSlices(s Snapshot) {
	for old, now := range changes.Between(m.snapshot.Slices, s.Slices, CompareObjects) {
		if name, counts := serviceOf(old); counts {
			e := m.memory(name)
			if e.gone == nil {
				e.gone = map[*Slice]struct{}{}
			}
			e.gone[old] = struct{}{}
		}
		if name, counts := serviceOf(now); counts {
			e := m.memory(name)
			e.come = append(e.come, now)
		}
	}
	for _, e := range m.changed {
		e.mergeSlices()
	}
}

// mergeSlices makes a new list where one changed, because ServicePorts share the old one.
func (e *memory) mergeSlices() {
	if len(e.gone)+len(e.come) == 0 {
		return
	}
	merged := make([]*Slice, 0, len(e.slices)-len(e.gone)+len(e.come))
	come := e.come
	for _, slice := range e.slices {
		if _, gone := e.gone[slice]; gone {
			continue
		}
		for len(come) > 0 && CompareObjects(come[0], slice) < 0 {
			merged, come = append(merged, come[0]), come[1:]
		}
		merged = append(merged, slice)
	}
	e.slices, e.gone, e.come = append(merged, come...), nil, nil
}

// takeProbed marks the Service of the API server where other API proxies answer than before.
func (m *Memo) takeProbed(s Snapshot) {
	if e := m.services[apiServer()]; e != nil && !m.snapshot.APIProxies.equal(s.APIProxies) {
		m.mark(e)
	}
}

// decide decides about the Services that changed, and returns the ports of all.
func (m *Memo) decide(o observer) []*ServicePort {
	if len(m.changed) == 0 && m.view.Ports != nil {
		return m.view.Ports
	}
	slices.SortFunc(m.changed, func(a, b *memory) int { return CompareServices(a.name, b.name) })
	ports := Replace(m.view.Ports, m.changed,
		func(sp *ServicePort, e *memory) int { return CompareServices(sp.Name.NamespacedName, e.name) },
		func(e *memory) []*ServicePort { return m.decideOne(o, e) })
	m.changed = nil
	return ports
}

func (m *Memo) decideOne(o observer, e *memory) []*ServicePort {
	e.changed = false
	switch {
	case e.svc != nil && m.config.Served(e.svc):
		return resolveService(o, e.svc, e.slices, e.confined)
	case e.svc == nil && len(e.slices) == 0:
		delete(m.services, e.name)
	}
	return nil
}

// CompareObjects orders objects by namespace and name.
func CompareObjects[P Object](a, b P) int { return CompareServices(nameOf(a), nameOf(b)) }

// Object is an object of which the namespace and the name are known.
type Object interface {
	GetNamespace() string
	GetName() string
}

func nameOf(o Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
