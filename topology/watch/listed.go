package watch

import "gridproxy/topology"

// Listed are objects that every API server has.
type Listed struct {
	Service bool // default/kubernetes
	Slice   bool // the EndpointSlice default/kubernetes, which the API server makes too

	// NodesLost: this Node, or all of several Nodes of its unit, were listed before and are missing
	// now. An event that deletes this Node is no such case.
	NodesLost bool
}

// lacks returns the first object that is expected and not listed; "" = no object is missing.
func (expected Listed) lacks(listed Listed) string {
	switch {
	case expected.Service && !listed.Service:
		return "Service default/kubernetes"
	case expected.Slice && !listed.Slice:
		return "EndpointSlice default/kubernetes"
	case listed.NodesLost:
		return "this Node, or the other Nodes of its unit"
	default:
		return ""
	}
}

// Listed returns what the stores contain. A new list replaces a store as a whole, and the
// events for removed objects follow. A Snapshot depends on these events, so it may show an
// intermediate state.
func (c *Cluster) Listed() Listed {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := topology.APIServer() // of the Service and its EndpointSlice
	return Listed{
		Service:   c.services.stored(name) != nil,
		Slice:     c.slices.stored(name) != nil,
		NodesLost: c.self.lost() || c.nodes.lost(),
	}
}

// lost reports whether the collection is empty because a list lacked the last object.
func (c *collection[T, P]) lost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unseen && len(c.informer.GetStore().ListKeys()) == 0
}

// lost reports whether the Nodes of a unit of this Node have all gone from a store, although they
// were several and this Node is one of them. While this Node leaves units, they may be empty.
func (n *nodeWatches) lost() bool {
	if !n.plan.since.IsZero() {
		return false
	}
	for u, w := range n.running {
		if n.plan.exists && u.has(n.plan.labels) && w.several && w.empty() {
			return true
		}
	}
	return false
}

// empty reports whether the store is empty. It looks at all keys only if the first object of the
// last list has gone.
func (c *collection[T, P]) empty() bool {
	if len(c.sorted) > 0 && c.stored(topology.NameOf(P(c.sorted[0]))) != nil {
		return false
	}
	return len(c.informer.GetStore().ListKeys()) == 0
}

var _ apiServer = (*Cluster)(nil)
