package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// candidate is an endpoint as an EndpointSlice describes it, before any decision.
type candidate struct {
	Endpoint
	zones, nodes []string // hints of trafficDistribution
	exempt       bool     // the node-local API proxy: never subject to closure
}

// candidates are the endpoints that the slices of a Service hold for one of its ports.
// A slice port belongs to the Service port of its name and protocol. As kube-proxy, only
// the first address of an endpoint counts, and a slice port without name or number none.
func candidates(node string, name ServicePortName, slices []*discoveryv1.EndpointSlice) []candidate {
	var all []candidate
	for _, slice := range slices {
		if local, found := localAPIServer(name, slice); found {
			all = append(all, local...)
			continue
		}
		for _, port := range slice.Ports {
			number, matches := portNumber(port, name)
			if !matches {
				continue
			}
			for i := range slice.Endpoints {
				if e, ok := newCandidate(node, slice, &slice.Endpoints[i], number); ok {
					all = append(all, e)
				}
			}
		}
	}
	return all
}

func portNumber(port discoveryv1.EndpointPort, name ServicePortName) (uint16, bool) {
	if port.Name == nil || *port.Name != name.Port || port.Port == nil || !ValidPort(*port.Port) {
		return 0, false
	}
	protocol := corev1.ProtocolTCP
	if port.Protocol != nil {
		protocol = *port.Protocol
	}
	return uint16(*port.Port), protocol == name.Protocol
}

func newCandidate(node string, slice *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint, port uint16) (candidate, bool) {
	if len(e.Addresses) == 0 {
		return candidate{}, false
	}
	addr, err := endpointAddr(slice, e.Addresses[0])
	if err != nil {
		return candidate{}, false
	}
	c := candidate{Endpoint: Endpoint{
		Addr:        netip.AddrPortFrom(addr, port),
		Ready:       isTrue(e.Conditions.Ready, true),
		Serving:     isTrue(e.Conditions.Serving, true),
		Terminating: isTrue(e.Conditions.Terminating, false),
	}}
	if e.NodeName != nil {
		c.Node = *e.NodeName
		c.Local = c.Node != "" && c.Node == node
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			c.zones = append(c.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			c.nodes = append(c.nodes, n.Name)
		}
	}
	return c, true
}

// endpointAddr reads an address of a slice, which holds one family.
func endpointAddr(slice *discoveryv1.EndpointSlice, text string) (netip.Addr, error) {
	addr, err := ParseAddr(text)
	if err == nil && !hasFamily(addr, slice.AddressType) {
		err = fmt.Errorf("%s is not of the slice's addressType %s", addr, excerpt.Of(string(slice.AddressType)))
	}
	return addr, err
}

func hasFamily(addr netip.Addr, t discoveryv1.AddressType) bool {
	return addr.Is4() && t == discoveryv1.AddressTypeIPv4 || addr.Is6() && t == discoveryv1.AddressTypeIPv6
}

func isTrue(condition *bool, unset bool) bool {
	if condition == nil {
		return unset
	}
	return *condition
}

// The annotations with which an EndpointSlice of default/kubernetes names the node-local
// proxy of the API server.
const (
	AnnotationLocalEndpoint = "superedge.io/local-endpoint"
	AnnotationLocalPort     = "superedge.io/local-port"
)

// localAPIServer replaces the masters by the node-local API proxy, as SuperEdge does: one endpoint
// for the TCP port named https. If the annotations cannot be read, or the address is of the other
// family, the masters stay.
func localAPIServer(name ServicePortName, slice *discoveryv1.EndpointSlice) ([]candidate, bool) {
	if name.Namespace != corev1.NamespaceDefault || name.Name != "kubernetes" {
		return nil, false
	}
	addr, err := ParseAddr(slice.Annotations[AnnotationLocalEndpoint])
	if err != nil || !hasFamily(addr, slice.AddressType) {
		return nil, false
	}
	port, err := strconv.ParseUint(slice.Annotations[AnnotationLocalPort], 10, 16)
	if err != nil || port == 0 {
		return nil, false
	}
	if name.Port != "https" || name.Protocol != corev1.ProtocolTCP {
		return nil, true
	}
	return []candidate{{
		Endpoint: Endpoint{Addr: netip.AddrPortFrom(addr, uint16(port)), Ready: true, Serving: true},
		exempt:   true,
	}}, true
}

// merge keeps one endpoint per address and port. A terminating one never replaces another: a Pod's
// address may already belong to the next Pod (kubernetes#135593).
func merge(all []candidate) []candidate {
	merged := slices.Clone(all)
	slices.SortStableFunc(merged, func(a, b candidate) int { return a.Addr.Compare(b.Addr) })
	out := merged[:0]
	for _, e := range merged {
		switch last := len(out) - 1; {
		case last < 0 || out[last].Addr != e.Addr:
			out = append(out, e)
		case !e.Terminating:
			out[last] = e
		}
	}
	return out
}
