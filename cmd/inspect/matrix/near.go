package matrix

import (
	"cmp"
	"net/netip"
	"slices"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/labels"
)

// nearEndpoints finds the endpoints that a decision for a Node needs, so that with many units or
// endpoints it is made in a fraction of the time.
type nearEndpoints struct {
	all       []*topology.Slice
	labelled  map[label][]position // nil = endpoints are never outside
	nodes     map[string][]position
	addresses map[netip.Addr][]position
}

type label struct{ key, value string }

type position struct{ slice, endpoint int }

func comparePositions(a, b position) int {
	return cmp.Or(cmp.Compare(a.slice, b.slice), cmp.Compare(a.endpoint, b.endpoint))
}

func (n *nearEndpoints) each(add func(position, topology.SliceEndpoint)) {
	for i, slice := range n.all {
		for j, e := range slice.Endpoints {
			add(position{i, j}, e)
		}
	}
}

// byLabel indexes the endpoints by the labels of their Nodes, for Services that are closed by
// these keys.
func (n *nearEndpoints) byLabel(keys []string, nodes map[string]labels.Set) {
	n.labelled = map[label][]position{}
	n.each(func(at position, e topology.SliceEndpoint) {
		set := nodes[e.Node]
		for _, key := range keys {
			if value := set[key]; value != "" {
				n.labelled[label{key, value}] = append(n.labelled[label{key, value}], at)
			}
		}
	})
}

// byNode indexes the endpoints by Node and by address, for Services whose own endpoints count.
func (n *nearEndpoints) byNode() {
	n.nodes, n.addresses = map[string][]position{}, map[netip.Addr][]position{}
	n.each(func(at position, e topology.SliceEndpoint) {
		n.nodes[e.Node] = append(n.nodes[e.Node], at)
		n.addresses[e.Addr] = append(n.addresses[e.Addr], at)
	})
}

// inUnit returns the EndpointSlices with the endpoints that share a label value with a Node.
// Closure leaves out every other endpoint (topology.Intersects), before anything else is decided.
// A Node that carries none of the keys gets all endpoints: what it may use is not a matter of
// units.
func (n *nearEndpoints) inUnit(keys []string, node labels.Set) []*topology.Slice {
	if n.labelled == nil || !slices.ContainsFunc(keys, func(key string) bool { return node[key] != "" }) {
		return n.all
	}
	var found []position
	for _, key := range keys {
		found = append(found, n.labelled[label{key, node[key]}]...)
	}
	return n.only(found)
}

// on returns the EndpointSlices with a Node's own endpoints, and with those of the same
// addresses: one endpoint takes the place of the others with its address.
func (n *nearEndpoints) on(node string) []*topology.Slice {
	var found []position
	for _, at := range n.nodes[node] {
		found = append(found, n.addresses[n.all[at.slice].Endpoints[at.endpoint].Addr]...)
	}
	return n.only(found)
}

// only returns all EndpointSlices, with no endpoints but those found. Even an empty one stays:
// it may lead to the node-local API proxy.
func (n *nearEndpoints) only(found []position) []*topology.Slice {
	slices.SortFunc(found, comparePositions)
	found = slices.Compact(found)
	kept := make([]topology.Slice, len(n.all))
	out := make([]*topology.Slice, len(n.all))
	endpoints := make([]topology.SliceEndpoint, 0, len(found))
	for i, slice := range n.all {
		kept[i], out[i] = *slice, &kept[i]
		first := len(endpoints)
		for len(found) > 0 && found[0].slice == i {
			endpoints = append(endpoints, slice.Endpoints[found[0].endpoint])
			found = found[1:]
		}
		kept[i].Endpoints = endpoints[first:len(endpoints):len(endpoints)]
	}
	return out
}
