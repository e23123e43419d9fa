package topology

import (
	"maps"
	"slices"

	"gridproxy/topology/changes"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tracker finds the Services whose inputs have changed between two Snapshots, by identity, as the
// Snapshot promises it: that costs a pass over the pointers of the Snapshot's lists.
type tracker struct {
	snapshot  Snapshot // of the last run
	config    Config
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
	changed  bool // it is in tracker.changed

	gone map[*Slice]struct{} // in the run in progress: those to leave out of slices
	come []*Slice            // and those to take in, sorted
}

// startOver reports whether nothing that is remembered counts: before the first run, and for
// another node or configuration.
func (m *tracker) startOver(s Snapshot, c Config) bool {
	return m.services == nil || s.Node != m.snapshot.Node || c != m.config
}

func newTracker(s Snapshot, c Config) tracker {
	return tracker{config: c, services: make(map[types.NamespacedName]*memory, len(s.Services)), malformed: map[*memory]struct{}{}}
}

// take marks every Service with a changed input, and returns what changes in LastKeys, by UID;
// no keys = the UID has no entry. of returns the Service that a slice belongs to.
func (m *tracker) take(s Snapshot, of func(*Slice) (types.NamespacedName, bool)) map[types.UID][]string {
	keys := m.takeServices(s)
	m.takeSlices(s, of)
	m.takeProbed(s)
	m.takeNodes(s)
	return keys
}

// memory marks a Service as changed, and returns its memory, which is made if it is missing.
func (m *tracker) memory(name types.NamespacedName) *memory {
	e := m.services[name]
	if e == nil {
		e = &memory{name: name}
		m.services[name] = e
	}
	m.mark(e)
	return e
}

func (m *tracker) mark(e *memory) {
	if !e.changed {
		e.changed = true
		m.changed = append(m.changed, e)
	}
}

func (m *tracker) takeServices(s Snapshot) map[types.UID][]string {
	keys := map[types.UID][]string{}
	for old := range changes.Between(m.snapshot.Services, s.Services, CompareObjects) {
		if old != nil { // before any other: the UID may be another Service's by now
			e := m.memory(NameOf(old))
			e.svc, e.confined, keys[old.UID] = nil, confinement{}, nil
			delete(m.malformed, e)
		}
	}
	for _, now := range changes.Between(m.snapshot.Services, s.Services, CompareObjects) {
		if now != nil {
			e := m.memory(NameOf(now))
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

func (m *tracker) confine(e *memory, lastKeys []string) {
	e.confined = confine(e.svc, lastKeys)
	if e.confined.malformed != "" {
		m.malformed[e] = struct{}{}
	}
}

// changedKeys returns last with the changes, where no keys delete an entry. Without any it is
// the same map.
func changedKeys(last, changes map[types.UID][]string) map[types.UID][]string {
	copied := false
	for uid, keys := range changes {
		if slices.Equal(last[uid], keys) {
			continue
		}
		if !copied {
			fresh := make(map[types.UID][]string, len(last)) // maps.Clone keeps the room of deleted entries
			maps.Copy(fresh, last)
			last, copied = fresh, true
		}
		last[uid] = keys
		if len(keys) == 0 {
			delete(last, uid)
		}
	}
	return last
}

// takeSlices marks the Services with a changed slice, and merges their slices once: one Service
// may have as many slices as anybody cares to create.
func (m *tracker) takeSlices(s Snapshot, of func(*Slice) (types.NamespacedName, bool)) {
	for old, now := range changes.Between(m.snapshot.Slices, s.Slices, CompareObjects) {
		if name, counts := of(old); counts {
			e := m.memory(name)
			if e.gone == nil {
				e.gone = map[*Slice]struct{}{}
			}
			e.gone[old] = struct{}{}
		}
		if name, counts := of(now); counts {
			e := m.memory(name)
			e.come = append(e.come, now)
		}
	}
	for _, e := range m.changed {
		e.mergeSlices()
	}
}

// mergeSlices applies gone and come to a copy of slices, because ServicePorts share the list.
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
func (m *tracker) takeProbed(s Snapshot) {
	if e := m.services[APIServer()]; e != nil && !m.snapshot.APIProxies.equal(s.APIProxies) {
		m.mark(e)
	}
}

// decided returns the sorted list with what decide returns for each Service that changed in
// place of its old results, and ends the run. order compares a result and a Service.
func decided[T any](m *tracker, list []T, order func(T, types.NamespacedName) int, decide func(*memory) []T) []T {
	if len(m.changed) == 0 && list != nil {
		return list
	}
	slices.SortFunc(m.changed, func(a, b *memory) int { return CompareServices(a.name, b.name) })
	now := changes.Replace(list, m.changed, func(t T, e *memory) int { return order(t, e.name) }, func(e *memory) []T {
		e.changed = false
		if e.svc == nil && len(e.slices) == 0 {
			delete(m.services, e.name)
		}
		if e.svc == nil {
			return nil
		}
		return decide(e)
	})
	m.changed = nil
	return now
}
