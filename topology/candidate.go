package topology

import (
	"net/netip"
	"slices"
)

// candidate is an endpoint as an EndpointSlice describes it, before any decision.
type candidate struct {
	Endpoint
	zones, nodes []string // hints of trafficDistribution
	exempt       bool     // the node-local API proxy: never subject to closure
}

// candidates returns the endpoints that the slices of a Service hold for one of its ports, or
// the node-local API proxy that takes their place.
func candidates(node string, probed ProbedProxies, name ServicePortName, slices []*Slice) []candidate {
	var all []candidate
	for _, slice := range slices {
		if probed.replaces(slice) {
			all = append(all, localAPIServer(name, *slice.apiProxy)...)
			continue
		}
		for _, port := range slice.Ports {
			if port.Name != name.Port || port.Protocol != name.Protocol {
				continue
			}
			for i := range slice.Endpoints {
				all = append(all, newCandidate(node, &slice.Endpoints[i], port.Number))
			}
		}
	}
	return all
}

func newCandidate(node string, e *SliceEndpoint, port uint16) candidate {
	c := candidate{Endpoint: Endpoint{
		Addr:        netip.AddrPortFrom(e.Addr, port),
		Node:        e.Node,
		Local:       e.Node != "" && e.Node == node,
		Ready:       e.Ready,
		Serving:     e.Serving,
		Terminating: e.Terminating,
	}}
	if e.Hints != nil {
		c.zones, c.nodes = e.Hints.Zones, e.Hints.Nodes
	}
	return c
}

// merge returns one endpoint for each address and port, sorted by them: the last that is ready
// and not terminating, else the last that is not terminating, else the first. So the names of
// slices do not decide whether the address is used. A terminating one never replaces another: a
// Pod's address may already belong to the next Pod (kubernetes#135593). kube-proxy keeps the
// last one.
func merge(all []candidate) []candidate {
	merged := slices.Clone(all)
	slices.SortStableFunc(merged, func(a, b candidate) int { return a.Addr.Compare(b.Addr) })
	out := merged[:0]
	for _, e := range merged {
		switch last := len(out) - 1; {
		case last < 0 || out[last].Addr != e.Addr:
			out = append(out, e)
		case out[last].Ready && !out[last].Terminating && !e.Ready: // it stays
		case !e.Terminating:
			out[last] = e
		}
	}
	return out
}

// Endpoints returns all endpoints that a Snapshot holds for a Service port, before closure,
// readiness and hints: what explain has to account for. An address that two endpoints
// share appears once for each.
func Endpoints(s Snapshot, name ServicePortName) []Endpoint {
	return toEndpoints(candidates(s.Node, s.APIProxies, name, slicesByService(s.Slices, serviceOf)[name.NamespacedName]))
}

// Deciding returns, for each address and port, the endpoint that decides how it is used, sorted
// by address: the one that merge keeps. all are in the order of Endpoints.
func Deciding(all []Endpoint) []Endpoint {
	entries := make([]candidate, len(all))
	for i, e := range all {
		entries[i].Endpoint = e
	}
	return toEndpoints(merge(entries))
}
