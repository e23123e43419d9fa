package hub

import "sigs.k8s.io/controller-runtime/pkg/client"

// memo keeps what was read from each version of an object. It forgets the objects that a round has
// not asked about, so it is as large as what exists.
type memo[T any] struct {
	last, now map[string]remembered[T] // by UID
}

type remembered[T any] struct {
	version string
	value   T
}

// begin begins a round.
func (m *memo[T]) begin() { m.last, m.now = m.now, map[string]remembered[T]{} }

// of returns what read returns for this version of an object. It calls read only if that is not
// known.
func (m *memo[T]) of(o client.Object, read func() T) T {
	uid := string(o.GetUID())
	r, found := m.last[uid]
	if !found || r.version != o.GetResourceVersion() {
		r = remembered[T]{o.GetResourceVersion(), read()}
	}
	m.now[uid] = r
	return r.value
}
