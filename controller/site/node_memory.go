package site

import (
	"sync/atomic"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// nodeMemory keeps what was read from each version of a Node, because to read the owners of its
// fields costs more than to decide, and which changes of Nodes matter. It can be lost at any time.
type nodeMemory struct {
	read map[types.UID]assign.Node
	// annotations are the keys that the last decision read; nil: all.
	annotations atomic.Pointer[sets.Set[string]]
}

func newNodeMemory() *nodeMemory { return &nodeMemory{read: map[types.UID]assign.Node{}} }

// expect remembers which annotations of Nodes the next decision, about units, reads. It is
// called before Nodes are listed, so that a change of a Node that does not matter to the units
// before is in that list.
func (m *nodeMemory) expect(units []*v1alpha2.NodeUnit) {
	keys := assign.ReadAnnotations(units)
	m.annotations.Store(&keys)
}

// matters reports whether a Node has changed in what decisions rest on.
func (m *nodeMemory) matters(e event.TypedUpdateEvent[*corev1.Node]) bool {
	keys := m.annotations.Load()
	return keys == nil || assign.Matters(e.ObjectOld, e.ObjectNew, *keys)
}

// readAll reads Nodes. Nodes that are not among them are forgotten.
func (m *nodeMemory) readAll(nodes []corev1.Node) []assign.Node {
	all, read := make([]assign.Node, len(nodes)), make(map[types.UID]assign.Node, len(nodes))
	for i := range nodes {
		n, found := m.read[nodes[i].UID]
		if !found || n.ResourceVersion != nodes[i].ResourceVersion {
			n = assign.ReadNode(&nodes[i])
		}
		all[i], read[n.UID] = n, n
	}
	m.read = read
	return all
}
