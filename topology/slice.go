package topology

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Slice is an EndpointSlice as decisions read it: what it says is read once, when it is made, and
// takes a third of the memory. It is never changed in place.
type Slice struct {
	Namespace, Name string
	ResourceVersion string

	// Service is what the label of the slice names. The name of the slice has no meaning (W-01).
	// "" = no proxy uses the slice, kube-proxy included: it names no Service, is labelled with
	// LabelHeadless, or holds host names. Which proxy serves a Service is read from the Service alone:
	// its label is copied to slices later, and never to slices that people create.
	Service string

	// Ports have a name and a valid number, Endpoints an address of the slice's family. A slice
	// without Service has none, unless it is read with names.
	Ports     []SlicePort
	Endpoints []SliceEndpoint

	// Triggered is the time of the change for which the controller wrote the slice (annotation
	// endpoints.kubernetes.io/last-change-trigger-time); zero = unknown.
	Triggered time.Time

	apiProxy *netip.AddrPort // see localProxyOf
	ignored  *ignoredParts
	names    *sliceNames // what only DNS reads; nil = read without names
}

// SlicePort is a port of a Slice. It belongs to the Service port of its name and protocol.
type SlicePort struct {
	Name     string
	Protocol corev1.Protocol
	Number   uint16
}

// SliceEndpoint is an endpoint of a Slice. Its conditions are those that kube-proxy assumes where a
// slice says nothing: ready, serving, not terminating.
type SliceEndpoint struct {
	Addr        netip.Addr
	Node        string
	Ready       bool
	Serving     bool
	Terminating bool
	Hints       *SliceHints
}

// SliceHints are those of trafficDistribution.
type SliceHints struct{ Zones, Nodes []string }

// ignoredParts are what NewSlice leaves out and warns of.
type ignoredParts struct {
	ports, addresses ignored
	node             string // the first, by name, that such an endpoint is on
}

// NewSlice reads an EndpointSlice. As kube-proxy, only the first address of an endpoint counts
// (kubernetes#106267), and a port without name or number does not. Invalid ones are left out,
// with warnings.
func NewSlice(s *discoveryv1.EndpointSlice) *Slice {
	out := sliceHead(s)
	if out.Service != "" { // else nothing more of it is read
		out.apiProxy = localProxyOf(s)
		out.readEndpoints(s)
	}
	return out
}

func sliceHead(s *discoveryv1.EndpointSlice) *Slice {
	out := &Slice{Namespace: s.Namespace, Name: s.Name, ResourceVersion: s.ResourceVersion}
	if _, headless := s.Labels[LabelHeadless]; !headless && s.AddressType != discoveryv1.AddressTypeFQDN {
		out.Service = s.Labels[discoveryv1.LabelServiceName]
	}
	if at, err := time.Parse(time.RFC3339Nano, s.Annotations[corev1.EndpointsLastChangeTriggerTime]); err == nil {
		out.Triggered = at
	}
	return out
}

func (s *Slice) readEndpoints(from *discoveryv1.EndpointSlice) {
	var left ignoredParts
	s.Ports = make([]SlicePort, 0, len(from.Ports))
	for _, p := range from.Ports {
		switch {
		case p.Port != nil && !ValidPort(*p.Port):
			left.ports.add(fmt.Errorf("%s: %d %s", excerpt.Of(from.Name), *p.Port, wantPort))
		case p.Port != nil && p.Name != nil:
			s.Ports = append(s.Ports, newSlicePort(p))
		}
	}
	s.Endpoints = make([]SliceEndpoint, 0, len(from.Endpoints))
	for i := range from.Endpoints {
		e := &from.Endpoints[i]
		if len(e.Addresses) == 0 {
			left.node = firstNode(left.node, ptr.Deref(e.NodeName, ""))
			continue
		}
		addr, err := endpointAddr(from.AddressType, e.Addresses[0])
		if err != nil {
			left.addresses.add(fmt.Errorf("%s: %w", excerpt.Of(from.Name), err))
			left.node = firstNode(left.node, ptr.Deref(e.NodeName, ""))
			continue
		}
		s.Endpoints = append(s.Endpoints, newSliceEndpoint(addr, e))
	}
	if left != (ignoredParts{}) {
		s.ignored = &left
	}
}

func newSlicePort(p discoveryv1.EndpointPort) SlicePort {
	return SlicePort{Name: *p.Name, Protocol: ptr.Deref(p.Protocol, corev1.ProtocolTCP), Number: uint16(*p.Port)} //nolint:gosec // a valid port
}

func newSliceEndpoint(addr netip.Addr, e *discoveryv1.Endpoint) SliceEndpoint {
	out := SliceEndpoint{
		Addr:        addr,
		Node:        ptr.Deref(e.NodeName, ""),
		Ready:       ptr.Deref(e.Conditions.Ready, true),
		Serving:     ptr.Deref(e.Conditions.Serving, true),
		Terminating: ptr.Deref(e.Conditions.Terminating, false),
	}
	if e.Hints == nil || len(e.Hints.ForZones)+len(e.Hints.ForNodes) == 0 {
		return out
	}
	out.Hints = &SliceHints{}
	for _, z := range e.Hints.ForZones {
		out.Hints.Zones = append(out.Hints.Zones, z.Name)
	}
	for _, n := range e.Hints.ForNodes {
		out.Hints.Nodes = append(out.Hints.Nodes, n.Name)
	}
	return out
}

// endpointAddr reads an address of a slice. One that is not of its family is an error.
func endpointAddr(family discoveryv1.AddressType, text string) (netip.Addr, error) {
	addr, err := ParseAddr(text)
	if err == nil && !hasFamily(addr, family) {
		err = fmt.Errorf("%s is not of the slice's addressType %s", addr, excerpt.Of(string(family)))
	}
	return addr, err
}

func hasFamily(addr netip.Addr, t discoveryv1.AddressType) bool {
	return addr.Is4() && t == discoveryv1.AddressTypeIPv4 || addr.Is6() && t == discoveryv1.AddressTypeIPv6
}

// FirstNode returns the first node, by name, that has an endpoint, also one that is left out;
// "" = no endpoint names its node.
func (s *Slice) FirstNode() string {
	first := ""
	if s.ignored != nil {
		first = s.ignored.node
	}
	for i := range s.Endpoints {
		first = firstNode(first, s.Endpoints[i].Node)
	}
	return first
}

func firstNode(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// Equal reports whether two Slices differ in nothing but the resource version.
func (s *Slice) Equal(t *Slice) bool {
	a, b := *s, *t
	a.ResourceVersion = b.ResourceVersion
	return reflect.DeepEqual(a, b)
}

// GetNamespace implements Object.
func (s *Slice) GetNamespace() string { return s.Namespace }

// GetName implements Object.
func (s *Slice) GetName() string { return s.Name }

// GetObjectMeta lets client-go hold a Slice in a store: metav1.ObjectMetaAccessor. Its detectors
// for tests (KUBE_WATCHLIST_INCONSISTENCY_DETECTOR, KUBE_CACHE_MUTATION_DETECTOR) need API objects.
func (s *Slice) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, ResourceVersion: s.ResourceVersion}
}
