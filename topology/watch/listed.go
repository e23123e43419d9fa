package watch

import (
	corev1 "k8s.io/api/core/v1"
)

// apiServerKey is Service default/kubernetes, and its EndpointSlice, in a store.
const apiServerKey = corev1.NamespaceDefault + "/kubernetes"

// Listed is the content of the stores. A new list replaces a store as a whole, and the events for
// removed objects follow. A Snapshot depends on these events, so it may show an intermediate state.
func (c *Cluster) Listed() Listed {
	return Listed{
		Service: c.services.stores(apiServerKey),
		Slice:   c.slices.stores(apiServerKey),
		Nodes:   c.countNodes(),
	}
}

// countNodes looks at all of them only where the first Node of the last Snapshot has gone.
func (c *Cluster) countNodes() int {
	c.mu.Lock()
	known := c.nodes.sorted
	c.mu.Unlock()
	if len(known) > 0 && c.nodes.stores(known[0].Name) {
		return len(known)
	}
	return len(c.nodes.informer.GetStore().ListKeys())
}

// stores reports whether the store has an object.
func (c *collection[T, P]) stores(key string) bool {
	_, found, err := c.informer.GetStore().GetByKey(key)
	return err == nil && found
}

var _ Lists = (*Cluster)(nil)
