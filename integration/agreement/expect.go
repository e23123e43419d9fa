package agreement

import (
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
)

// deviation is a way in which IPVS mode differs from iptables mode on purpose.
type deviation string

// The deviations that a walk can see. docs/packet-path.md lists them, and what a walk
// cannot see.
const (
	// unknownPort: an address of a virtual server is the node's own, so that a port or protocol
	// without a server is refused there instead of leaving the machine.
	unknownPort deviation = "unknown port of a virtual server's address"
	// ownMasqueraded: the node's own packets to a cluster IP have that address as their source, to
	// which no answer would come back. So they are masqueraded also where iptables mode takes no
	// address, or the process's address, for a Pod.
	ownMasqueraded deviation = "the node's own packets to a cluster IP are masqueraded"
	// ownRefused: iptables mode lets the node's own packets to an external address without
	// endpoints leave the machine, unless the Service is closed.
	ownRefused deviation = "the node's own packets to an external address of an open Service without endpoints"
	// strangeNodePort: iptables mode refuses a NodePort on every local address, also where
	// NodePorts do not answer.
	strangeNodePort deviation = "a NodePort's verdict where NodePorts do not answer"
	// fromTheWire: NodePorts on loopback are for the node's own processes. With external
	// policy Local the route for everybody else is not in the chains of IPVS mode.
	fromTheWire deviation = "a NodePort on loopback, from the wire, with external policy Local"
	// ownSource: the node's own packets to an address of a virtual server have that address
	// as their source, so that source ranges of another port there are asked about it. They
	// hold it where they hold the address of the node that the Node object tells of.
	ownSource deviation = "the node's own packets where source ranges hold its address and it has no Node"
)

var deviations = [...]deviation{unknownPort, ownMasqueraded, ownRefused, strangeNodePort, fromTheWire, ownSource}

// facts are what the deviations depend on. They are found out here once more and on
// purpose: by the Ruleset alone, not by what rules/ipvs makes of it.
type facts struct {
	modes     *modes
	frontends map[ipvs.ServerKey]rules.Frontend // but NodePorts
	live      map[netip.Addr]bool               // on the link
}

func newFacts(m *modes) facts {
	f := facts{modes: m, frontends: map[ipvs.ServerKey]rules.Frontend{}, live: map[netip.Addr]bool{}}
	for _, s := range m.ruleset.Services {
		for _, front := range s.Frontends {
			if front.Kind == rules.NodePort {
				continue
			}
			addr := front.Addr.Addr()
			f.frontends[ipvs.ServerKey{Addr: front.Addr, Proto: netfilter.Proto(s.Name.IPProtocol())}] = front
			if m.served(s, front) && !slices.Contains(m.cluster.HostAddrs, addr) {
				f.live[addr] = true
			}
		}
	}
	return f
}

// served reports whether a Frontend has a virtual server: it can be said by one, its address
// is not excluded, and its Service does not need all of its chains for another Frontend.
func (m *modes) served(s *rules.Service, front rules.Frontend) bool {
	_, any := routeFromAny(front)
	if len(front.Allow) > 0 || m.excluded(front.Addr.Addr()) || !any && front.Verdict != rules.Reject {
		return false
	}
	if len(front.Routes) < 2 {
		return true
	}
	return !slices.ContainsFunc(s.Frontends, func(other rules.Frontend) bool {
		if other.Kind == rules.ClusterIP || other.Addr.Addr().Is6() != front.Addr.Addr().Is6() {
			return false
		}
		return len(other.Allow) > 0 || slices.ContainsFunc(m.addresses(other), m.excluded)
	})
}

func (m *modes) excluded(addr netip.Addr) bool {
	return slices.ContainsFunc(m.exclude, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// addresses are those on which a Frontend answers.
func (m *modes) addresses(f rules.Frontend) []netip.Addr {
	switch {
	case f.Kind != rules.NodePort:
		return []netip.Addr{f.Addr.Addr()}
	case f.Addr.Addr().Is6():
		return m.ruleset.NodePorts.IPv6.Addrs
	default:
		return m.ruleset.NodePorts.IPv4.Addrs
	}
}

func routeFromAny(f rules.Frontend) (rules.Route, bool) {
	i := slices.IndexFunc(f.Routes, func(r rules.Route) bool { return r.From == rules.Any })
	if i < 0 {
		return rules.Route{}, false
	}
	return f.Routes[i], true
}

// comparable reports whether a packet can exist in IPVS mode at all: no other machine can have an
// address that is the node's own, and the kernel drops what comes in with one.
func (f facts) comparable(p trace.Packet) bool { return p.FromNode || !f.live[p.Src] }

// rangesSource is the packet that source ranges see of one of the node's own; ok is false
// where that is the packet itself.
func (f facts) rangesSource(p trace.Packet) (seen trace.Packet, ok bool) {
	front := f.frontends[ipvs.ServerKey{Addr: netip.AddrPortFrom(p.Dst, p.DstPort), Proto: p.Proto}]
	if p.Src.IsValid() || !f.live[p.Dst] || len(front.Allow) == 0 {
		return p, false
	}
	p.Src, p.Local = p.Dst, append(slices.Clip(p.Local), p.Dst)
	return p, true
}

// expect returns what must become of a packet in IPVS mode, given what becomes of it in iptables
// mode, and of one that goes to a port without a server at the same address. It also returns which
// deviation that is; "" means that the ends are the same. Ends are without their probability.
func (f facts) expect(p trace.Packet, ends, unserved []trace.End) ([]trace.End, deviation) {
	want, why := f.deviate(p, ends, unserved)
	if slices.Equal(want, ends) {
		return ends, ""
	}
	return want, why
}

func (f facts) deviate(p trace.Packet, ends, unserved []trace.End) ([]trace.End, deviation) {
	at := netip.AddrPortFrom(p.Dst, p.DstPort)
	passes := slices.Equal(ends, []trace.End{{Verdict: trace.Accepted, Dst: at}})
	refused := []trace.End{{Verdict: trace.Rejected, Dst: at}}
	front, known := f.frontends[ipvs.ServerKey{Addr: at, Proto: p.Proto}]
	internal := front.Kind == rules.ClusterIP
	switch {
	case f.live[p.Dst] && !known && passes:
		return refused, unknownPort
	case f.live[p.Dst] && known && p.FromNode && !internal && front.Verdict == rules.Reject && passes:
		return refused, ownRefused
	case f.live[p.Dst] && known && p.FromNode && internal && len(front.Routes) > 0:
		masqueraded := slices.Clone(ends)
		for i := range masqueraded {
			masqueraded[i].Masquerade = true
		}
		return slices.Compact(masqueraded), ownMasqueraded
	case f.strangeNodePort(p):
		return moved(unserved, at), strangeNodePort
	case f.fromTheWire(p):
		return moved(unserved, at), fromTheWire
	default:
		return ends, ""
	}
}

// moved are the ends of a packet that is not translated, at another port.
func moved(ends []trace.End, to netip.AddrPort) []trace.End {
	ends = slices.Clone(ends)
	for i := range ends {
		ends[i].Dst = to
	}
	return ends
}

// strangeNodePort reports whether a packet goes to a NodePort's number at an address of the
// machine at which NodePorts do not answer.
func (f facts) strangeNodePort(p trace.Packet) bool {
	m := f.modes
	if _, front := f.nodePort(p); front == nil || !p.Dst.IsLoopback() && !slices.Contains(m.cluster.HostAddrs, p.Dst) {
		return false
	}
	addrs := m.ruleset.NodePorts.IPv4
	if p.Dst.Is6() {
		addrs = m.ruleset.NodePorts.IPv6
	}
	if p.Dst.IsLoopback() {
		return p.Dst.Is6() || !m.ruleset.NodePorts.Localhost || !addrs.All && !slices.Contains(addrs.Addrs, p.Dst)
	}
	return !slices.Contains(addrs.Addrs, p.Dst)
}

// fromTheWire reports whether a packet comes in, not from a Pod of this node, to a NodePort on
// loopback that the chains hold only in part.
func (f facts) fromTheWire(p trace.Packet) bool {
	s, front := f.nodePort(p)
	return front != nil && !p.FromNode && p.Dst.IsLoopback() && p.Dst.Is4() && !f.isPod(p) &&
		len(front.Routes) > 1 && f.modes.served(s, *front)
}

// isPod reports whether the detector takes a packet for one of this node's Pods.
func (f facts) isPod(p trace.Packet) bool {
	local := f.modes.ruleset.Local
	switch {
	case local.Bridge != "":
		return p.InInterface == local.Bridge
	case local.InterfacePrefix != "":
		return strings.HasPrefix(p.InInterface, local.InterfacePrefix)
	default:
		return local.Prefix(p.Src.Is6()).Contains(p.Src)
	}
}

// nodePort finds the NodePort whose number and protocol a packet has, or nil.
func (f facts) nodePort(p trace.Packet) (*rules.Service, *rules.Frontend) {
	for _, s := range f.modes.ruleset.Services {
		for i, front := range s.Frontends {
			if front.Kind == rules.NodePort && front.Addr.Port() == p.DstPort &&
				front.Addr.Addr().Is6() == p.Dst.Is6() && netfilter.Proto(s.Name.IPProtocol()) == p.Proto {
				return s, &s.Frontends[i]
			}
		}
	}
	return nil, nil
}
