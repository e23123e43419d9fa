package topology

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// View is what one node may use: a Snapshot after closure, readiness and locality.
type View struct {
	Node  string
	Self  NodeFacts
	Ports []*ServicePort // sorted by Name; never changed in place, so a pointer identifies a result

	// LastKeys are those of the next Snapshot: of each Service the keys of its annotation
	// if they can be read, else those remembered so far. A Service that was opened on
	// purpose has none, so that a later mistake closes it to this node.
	LastKeys map[types.UID][]string

	// Drops lists the endpoints that closure leaves out of one of Ports, sorted by address: what
	// Closure.LeftOut counts. It decides again, so that no list has to be kept.
	Drops func(*ServicePort) []Drop
}

// FamilyCount is a number for each address family.
type FamilyCount struct{ IPv4, IPv6 int }

// NodeFacts are this node's own addresses.
type NodeFacts struct {
	IPs       []netip.Addr   // Node.status.addresses, InternalIP before ExternalIP; primary first
	HostAddrs []netip.Addr   // every address of the machine, sorted
	PodCIDRs  []netip.Prefix // Node.spec.podCIDRs

	HostNetworks []netip.Prefix // Host.Networks; none where the machine was not asked
}

// ServicePort is one port of one Service with the endpoints this node may use for it,
// of both families.
type ServicePort struct {
	Name     ServicePortName
	Service  *corev1.Service
	Port     int32 // as the Service says it, unchecked: see ValidPort
	NodePort int32 // in the same way
	Closure  Closure

	Cluster []Endpoint // usable under traffic policy Cluster; empty = none is usable at all, per family
	Local   []Endpoint // usable under traffic policy Local

	// Serving are the endpoints in the unit that still serve, terminating ones too:
	// UDP flows to these are left alone.
	Serving []netip.AddrPort

	// ReadyLocal counts the distinct addresses of the Service's ready endpoints on this node and in
	// its unit, over all of its ports: what a health-check node port answers from.
	ReadyLocal FamilyCount

	Ignored  []Drop   // endpoints left out for their address, closed or not; sorted by address
	Warnings []string // what of the Service and its slices is ignored; the same for all of its ports

	Slices []*Slice // all of the Service that any proxy uses: what it was decided from
}

// PortsOf returns the ports of a Service among those of a View.
func PortsOf(ports []*ServicePort, name types.NamespacedName) []*ServicePort {
	first, _ := slices.BinarySearchFunc(ports, name, func(sp *ServicePort, name types.NamespacedName) int {
		return CompareServices(sp.Name.NamespacedName, name)
	})
	end := first
	for end < len(ports) && ports[end].Name.NamespacedName == name {
		end++
	}
	return ports[first:end]
}

// ServicePortName identifies a port of a Service. Two ports of one Service may share a
// name only if their protocols differ.
type ServicePortName struct {
	types.NamespacedName
	Port     string
	Protocol corev1.Protocol
}

// String returns "namespace/name" with ":port" behind it where the port has a name, as
// kube-proxy prints it in comments and hashes it into chain names. The protocol is not
// part of it.
func (n ServicePortName) String() string {
	if n.Port == "" {
		return n.NamespacedName.String()
	}
	return n.NamespacedName.String() + ":" + n.Port
}

// IPProtocol returns the protocol's number in an IP header: TCP's if the Service names none.
func (n ServicePortName) IPProtocol() uint8 {
	switch n.Protocol {
	case corev1.ProtocolUDP:
		return 17
	case corev1.ProtocolSCTP:
		return 132
	default:
		return 6
	}
}

// Endpoint is one address and port behind a ServicePort.
type Endpoint struct {
	Addr        netip.AddrPort
	Node        string // name of the node it runs on
	Local       bool   // it runs on this node
	Ready       bool
	Serving     bool
	Terminating bool
}

// Closure says how a Service port was confined, and what that left out.
type Closure struct {
	Keys      []string // topology keys in force; nil = an ordinary Service
	Policy    Policy
	Malformed string // why the annotations cannot be read
	OwnOnly   bool   // confined to this node's own endpoints: malformed without last good keys, or a node without unit under NodesWithoutUnit local
	KeyInUse  string // Ordered: the key whose endpoints are used, "*" = any endpoint, "" = none

	LeftOut []ReasonCount // endpoints left out by closure; View.Drops lists them
}

// Closed reports whether the Service is confined at all.
func (c Closure) Closed() bool { return len(c.Keys) > 0 || c.OwnOnly }

// ReasonCount is how many endpoints are left out for one Reason.
type ReasonCount struct {
	Reason Reason
	Count  int
}

// Drop is an endpoint that is left out.
type Drop struct {
	Endpoint Endpoint
	Reason   Reason
}

// Reason says why an endpoint is left out.
type Reason string

// The reasons, as explain prints them.
const (
	ReasonOtherUnit       Reason = "other unit"              // its node carries another value
	ReasonEndpointNoUnit  Reason = "its node has no unit"    // its node is known but carries none of the keys
	ReasonNoNodeName      Reason = "no nodeName"             // the EndpointSlice does not say where it runs
	ReasonUnknownEndpoint Reason = "its node is unknown"     // no Node object of that name
	ReasonSelfUnknown     Reason = "this node is unknown"    // no Node object for this node
	ReasonSelfNoUnit      Reason = "this node has no unit"   // this node carries none of the keys
	ReasonNotOwn          Reason = "not on this node"        // OwnOnly
	ReasonPreferredKey    Reason = "a preferred key matches" // Ordered: an earlier key is in use
)

// ReasonNotWatched takes the place of ReasonUnknownEndpoint, ReasonEndpointNoUnit and, mostly, of
// ReasonOtherUnit where a Snapshot holds only the Nodes of this node's units (Snapshot.Watched).
const ReasonNotWatched Reason = "not in this unit (its Node is not watched)"

// The reasons for which an address is unusable; closure has no part in them.
const (
	ReasonUnspecified Reason = "an unspecified address" // 0.0.0.0/8, ::
	ReasonLoopback    Reason = "a loopback address"     // 127.0.0.0/8, ::1
	ReasonLinkLocal   Reason = "a link-local address"   // 169.254.0.0/16, 224.0.0.0/24, fe80::/10, ff02::/16
	ReasonMulticast   Reason = "a multicast address"    // 224.0.0.0/4, 255.255.255.255, ff00::/8
)

// Policy is how several topology keys combine.
type Policy string

// The values of annotation superedge.io/topology-policy.
const (
	PolicyAny     Policy = "Any"     // an endpoint stays if any key matches, as SuperEdge
	PolicyOrdered Policy = "Ordered" // the first key with a usable endpoint wins
)
