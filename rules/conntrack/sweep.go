package conntrack

import (
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/changes"
)

// Verdict is what becomes of a flow.
type Verdict uint8

// The verdicts.
const (
	Keep     Verdict = iota
	Stale            // UDP that must not go on: delete it
	Outlived         // TCP or SCTP to an endpoint that left the unit: count it
)

// Table is the part of the kernel's table that holds flows of one family and protocol.
type Table struct {
	IPv6  bool
	Proto Protocol
}

// Sweep is the decision about every flow after rules changed. Pure: create it with NewSweep, then
// call Judge.
type Sweep struct {
	families  rules.FamilySet
	serving   map[target]set[netip.AddrPort] // of each UDP Frontend: what its flows may go to
	gone      set[target]                    // UDP Frontends that were swept for last and are no more
	left      map[target]set[netip.AddrPort] // of each other Frontend: what has left the unit
	tables    set[Table]                     // that can hold flows to these Frontends
	nodePorts rules.NodePortScope
	local     set[netip.Addr]
	localDNS  []netip.Addr // see rules.LocalDNS
}

// target is the original destination of flows to a Frontend. For a NodePort, the unspecified
// address means every local address.
type target struct {
	addr  netip.AddrPort
	proto Protocol
}

type set[T comparable] map[T]struct{}

func (s set[T]) has(v T) bool { _, found := s[v]; return found }

// NewSweep prepares the judgement of flows of some families that were created under the Services
// old or earlier, now that want, compiled from view, is in force. Without udp, all UDP flows are
// kept because nothing about them changed.
func NewSweep(old []*rules.Service, want rules.Ruleset, view topology.View, udp bool, families rules.FamilySet) Sweep {
	s := Sweep{
		families:  families,
		serving:   make(map[target]set[netip.AddrPort]),
		gone:      make(set[target]),
		left:      make(map[target]set[netip.AddrPort]),
		tables:    make(set[Table]),
		nodePorts: want.NodePorts,
		local:     make(set[netip.Addr], len(view.Self.HostAddrs)),
		localDNS:  want.LocalDNS.Addrs,
	}
	for _, a := range view.Self.HostAddrs {
		s.local[a] = struct{}{}
	}
	if udp {
		s.addServing(want.Services)
		s.addGone(old)
	}
	s.addLeft(old, want.Services, view)
	return s
}

func (s Sweep) addServing(services []*rules.Service) {
	for _, service := range services {
		if isUDP(service) {
			s.allow(s.serving, service, service.Serving)
		}
	}
}

// addGone notes Frontends that do not exist any more, because their Service was deleted or lost an
// address or port.
func (s Sweep) addGone(old []*rules.Service) {
	for _, service := range old {
		if !isUDP(service) {
			continue
		}
		for _, f := range service.Frontends {
			t := target{addr: f.Addr, proto: UDP}
			if _, found := s.serving[t]; !found && s.looksAt(f) {
				s.gone[t] = struct{}{}
				s.tables[t.table()] = struct{}{}
			}
		}
	}
}

// addLeft notes the endpoints that flows could reach under old and that closure leaves out now.
// Endpoints that were deleted do not count. A Service that is the same has lost none.
func (s Sweep) addLeft(old, want []*rules.Service, view topology.View) {
	for before, now := range changes.Between(old, want, compareServices) {
		if before == nil || now == nil || isUDP(before) || len(before.Serving) == 0 {
			continue
		}
		i, found := slices.BinarySearchFunc(view.Ports, now.Name, func(sp *topology.ServicePort, n topology.ServicePortName) int {
			return topology.CompareNames(sp.Name, n)
		})
		if !found || len(view.Ports[i].Closure.LeftOut) == 0 {
			continue
		}
		serving := make(set[netip.AddrPort], len(before.Serving))
		for _, a := range before.Serving {
			serving[a] = struct{}{}
		}
		var left []netip.AddrPort
		for _, drop := range view.Drops(view.Ports[i]) {
			if serving.has(drop.Endpoint.Addr) {
				left = append(left, drop.Endpoint.Addr)
			}
		}
		if len(left) > 0 {
			s.allow(s.left, before, left)
		}
	}
}

// looksAt reports whether flows to a Frontend are judged.
func (s Sweep) looksAt(f rules.Frontend) bool { return s.families[rules.FamilyOf(f.Addr.Addr())] }

// allow adds addrs of a Frontend's own family to what is known of each Frontend.
func (s Sweep) allow(m map[target]set[netip.AddrPort], service *rules.Service, addrs []netip.AddrPort) {
	for _, f := range service.Frontends {
		if !s.looksAt(f) {
			continue
		}
		t := target{addr: f.Addr, proto: Protocol(service.Name.IPProtocol())}
		if m[t] == nil {
			m[t] = make(set[netip.AddrPort])
			s.tables[t.table()] = struct{}{}
		}
		for _, a := range addrs {
			if a.Addr().Is6() == f.Addr.Addr().Is6() {
				m[t][a] = struct{}{}
			}
		}
	}
}

// Tables returns the parts of the kernel's table that can hold a flow which Judge does not
// keep, in a fixed order.
func (s Sweep) Tables() []Table {
	var tables []Table
	for _, proto := range []Protocol{UDP, TCP, SCTP} {
		for _, ipv6 := range []bool{false, true} {
			if t := (Table{IPv6: ipv6, Proto: proto}); s.tables.has(t) {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

// Judge decides what becomes of a flow. Frontends that exist now decide before those that are
// gone, and an exact address before a NodePort, as in the kernel.
func (s Sweep) Judge(f Flow) Verdict {
	if slices.Contains(s.localDNS, f.ReplySrc.Addr()) {
		return Keep // whoever leads flows to the DNS server of this node also ends them
	}
	exact := target{addr: f.Dst, proto: f.Proto}
	anywhere := exact
	if s.mayBeNodePort(f) {
		anywhere.addr = netip.AddrPortFrom(rules.FamilyOf(f.Dst.Addr()).Unspecified(), f.Dst.Port())
	}
	for _, t := range [...]target{exact, anywhere} {
		if serving, found := s.serving[t]; found {
			return staleIf(!serving.has(f.ReplySrc))
		}
	}
	for _, t := range [...]target{exact, anywhere} {
		if s.gone.has(t) && f.Translated() { // untranslated: the address may be another's now
			return Stale
		}
		if s.left[t].has(f.ReplySrc) {
			return Outlived
		}
	}
	return Keep
}

func staleIf(stale bool) Verdict {
	if stale {
		return Stale
	}
	return Keep
}

// mayBeNodePort reports whether a NodePort's rule could have matched the flow. An untranslated flow
// to a local address on which NodePorts do not answer belongs to a local socket that happens to use
// the same port.
func (s Sweep) mayBeNodePort(f Flow) bool {
	a := f.Dst.Addr()
	return (s.local.has(a) || a.IsLoopback()) && (f.Translated() || s.answers(a))
}

// answers reports whether NodePorts answer on a local address.
func (s Sweep) answers(a netip.Addr) bool {
	switch {
	case a.IsLoopback():
		return a.Is4() && s.nodePorts.Localhost
	case a.Is6():
		return s.nodePorts.IPv6.All || slices.Contains(s.nodePorts.IPv6.Addrs, a)
	default:
		return s.nodePorts.IPv4.All || slices.Contains(s.nodePorts.IPv4.Addrs, a)
	}
}

func (t target) table() Table { return Table{IPv6: t.addr.Addr().Is6(), Proto: t.proto} }
