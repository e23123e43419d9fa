package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddressConflict is an address that a Service names and does not get.
type AddressConflict struct {
	Service topology.ServicePortName // which names it
	Kind    Kind                     // in which field
	Addr    netip.AddrPort
	Holder  topology.ServicePortName // which gets it; the zero name = it is Reserved
	Held    Kind                     // in which field the Holder names it

	Reserved Reservation
}

// Reservation is what an address is kept for, so that no Service gets it.
type Reservation uint8

// The reservations of an address.
const (
	NotReserved Reservation = iota
	APIServerAnswers
	LocalDNSAnswers
)

// String describes it, without the name of the Service.
func (c AddressConflict) String() string {
	what := fmt.Sprintf("%s %s/%s", c.Kind, c.Addr, cmp.Or(c.Service.Protocol, corev1.ProtocolTCP))
	switch {
	case c.Reserved == LocalDNSAnswers:
		return what + " has no effect: the DNS server of this Node answers there (--dns-address)"
	case c.Reserved == APIServerAnswers:
		return what + " has no effect: an API server answers there"
	case c.Held != c.Kind:
		return fmt.Sprintf("%s has no effect: Service %s has the address in %s", what, c.Holder.NamespacedName, c.Held)
	default:
		return fmt.Sprintf("%s has no effect: Service %s has the address too, and is older or sorts first by name", what, c.Holder.NamespacedName)
	}
}

// String returns the field of a Service that a Frontend of this Kind comes from.
func (k Kind) String() string {
	return [...]string{"clusterIP", "externalIPs", "status.loadBalancer", "nodePort"}[k]
}

// claim is one Service's claim to an address, a port and a protocol.
type claim struct {
	Service *Service
	Kind    Kind
}

// compare orders claims to the same address. The smallest one gets it, on every node and after
// every restart. The field decides first: a cluster IP, then an address that a load balancer was
// given, then an external IP, which any tenant can name (CVE-2020-8554), then a NodePort. This is
// the order in which packets meet them. Then the older Service wins: the API server sets
// creationTimestamp, and no user can backdate it. A Service of unknown age counts as the youngest.
// Then the name decides.
func (c claim) compare(d claim) int {
	return cmp.Or(
		cmp.Compare(c.Kind.rank(), d.Kind.rank()),
		compareAges(c.Service, d.Service),
		topology.CompareNames(c.Service.Name, d.Service.Name),
	)
}

func (k Kind) rank() int {
	return [...]int{ClusterIP: 0, LoadBalancer: 1, ExternalIP: 2, NodePort: 3}[k]
}

func compareAges(a, b *Service) int {
	switch {
	case a.Created.IsZero() == b.Created.IsZero():
		return a.Created.Compare(b.Created)
	case a.Created.IsZero():
		return 1
	default:
		return -1
	}
}

// ClaimKey is what no two Frontends may share.
type ClaimKey struct {
	Addr     netip.AddrPort // of a NodePort Frontend: the unspecified address
	Protocol uint8
}

// without returns the Service without the Frontends at the given ascending indexes, and without
// the sets that only these routed to.
func (s *Service) without(frontends []int) *Service {
	if len(frontends) == 0 {
		return s
	}
	trimmed := *s
	trimmed.Frontends, trimmed.Sets = nil, nil
	place := map[int]int{} // of each set that is still routed to
	for i, f := range s.Frontends {
		if _, lost := slices.BinarySearch(frontends, i); lost {
			continue
		}
		f.Routes = slices.Clone(f.Routes)
		for j, r := range f.Routes {
			if _, kept := place[r.Set]; !kept {
				place[r.Set] = len(trimmed.Sets)
				trimmed.Sets = append(trimmed.Sets, s.Sets[r.Set])
			}
			f.Routes[j].Set = place[r.Set]
		}
		trimmed.Frontends = append(trimmed.Frontends, f)
	}
	return &trimmed
}

// takenFromNodePorts returns the members of shadowing whose address is in host, the sorted
// addresses of this machine. A NodePort does not answer there: packets meet the other Frontend
// first, whichever Service it belongs to.
func takenFromNodePorts(shadowing []ClaimKey, host []netip.Addr) []ClaimKey {
	var taken []ClaimKey
	for _, key := range shadowing {
		if _, here := slices.BinarySearchFunc(host, key.Addr.Addr(), netip.Addr.Compare); here {
			taken = append(taken, key)
		}
	}
	return taken
}

// Compare orders keys by address, port and protocol.
func (k ClaimKey) Compare(l ClaimKey) int {
	return cmp.Or(k.Addr.Compare(l.Addr), cmp.Compare(k.Protocol, l.Protocol))
}

func (s *Service) claimKey(f Frontend) ClaimKey { return ClaimKey{f.Addr, s.Name.IPProtocol()} }

// sameClaims reports whether two results for one Service port claim the same.
func sameClaims(a, b *Service) bool {
	return a.Created.Equal(b.Created) && slices.EqualFunc(a.Frontends, b.Frontends, func(f, g Frontend) bool {
		return f.Kind == g.Kind && f.Addr == g.Addr
	})
}

// reserved holds the addresses that no Service gets.
type reserved struct {
	// apiServers are kept over TCP, from all fields except clusterIP. Sorted. An unspecified address
	// keeps a NodePort.
	apiServers []netip.AddrPort
	// localDNS are kept with all ports and protocols, from all fields. A NodePort would answer on
	// them because they belong to this machine.
	localDNS []netip.Addr
}

func (r reserved) reservation(s *Service, f Frontend) Reservation {
	isNodePort := f.Kind == NodePort && f.Addr.Port() == PortDNS && firstOf(r.localDNS, f.Addr.Addr().Is6()).IsValid()
	if isNodePort || slices.Contains(r.localDNS, f.Addr.Addr()) {
		return LocalDNSAnswers
	}
	if f.Kind == ClusterIP || s.Name.IPProtocol() != protocolTCP {
		return NotReserved
	}
	if _, found := slices.BinarySearchFunc(r.apiServers, f.Addr, netip.AddrPort.Compare); found {
		return APIServerAnswers
	}
	return NotReserved
}

func (r reserved) equal(other reserved) bool {
	return slices.Equal(r.apiServers, other.apiServers) && slices.Equal(r.localDNS, other.localDNS)
}

const protocolTCP = 6

// apiServers returns the addresses of API servers, sorted: those that the daemon is configured
// with, and the endpoints of Service default/kubernetes.
func apiServers(v topology.View, configured []netip.AddrPort) []netip.AddrPort {
	all := slices.Clone(configured)
	for _, sp := range topology.PortsOf(v.Ports, types.NamespacedName{Namespace: "default", Name: "kubernetes"}) {
		if sp.Name.IPProtocol() != protocolTCP {
			continue
		}
		for _, e := range slices.Concat(sp.Cluster, sp.Local) {
			all = append(all, e.Addr)
		}
		all = append(all, sp.Serving...)
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return slices.Compact(all)
}

// reserve returns what is kept for API servers and for the DNS server of this node. A NodePort
// would answer on an API server's address that belongs to this machine.
func reserve(apiServers []netip.AddrPort, host, localDNS []netip.Addr) reserved {
	all := slices.Clone(apiServers)
	for _, a := range apiServers {
		if slices.Contains(host, a.Addr()) {
			all = append(all, netip.AddrPortFrom(FamilyOf(a.Addr()).Unspecified(), a.Port()))
		}
	}
	slices.SortFunc(all, netip.AddrPort.Compare)
	return reserved{apiServers: slices.Compact(all), localDNS: localDNS}
}
