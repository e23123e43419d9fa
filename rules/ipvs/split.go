package ipvs

import (
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// serverSlot is one address and port of a Service: in a virtual server, in chains, or in both.
type serverSlot struct {
	key       ServerKey
	bits      int              // length of its network in SetChains
	set       string           // which set lists its virtual server
	endpoints []netip.AddrPort // the real servers; none = the virtual server refuses
	onLink    bool             // the virtual server needs its address on Link
}

// splitter decides what virtual servers serve and what chains serve. No other place does.
type splitter struct {
	facts facts
	taken []rules.ClaimKey // see rules.Ruleset.NodePortsTaken; sorted
}

// loopback4 is where NodePorts answer processes of the node.
var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

var broadcast4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func (sp splitter) service(s *rules.Service) *servicePlan {
	p := &servicePlan{service: s, server: Server{Scheduler: sp.facts.config.schedulerOf(s), Affinity: s.Affinity}}
	rest := *s
	rest.Frontends = nil
	for i, f := range s.Frontends {
		slots, chains := sp.frontend(s, f, sp.together(s, f))
		if sp.facts.config.Retire || !sp.inUse(f) {
			slots, chains = withoutServers(slots), &s.Frontends[i]
		}
		p.slots = append(p.slots, slots...)
		if chains != nil {
			rest.Frontends = append(rest.Frontends, *chains)
		}
	}
	switch {
	case sp.facts.config.Retire:
		p.residual = s
	case len(rest.Frontends) > 0:
		p.residual = &rest
	}
	return p
}

func (sp splitter) inUse(f rules.Frontend) bool {
	families := sp.facts.config.Families
	return families == nil || slices.Contains(families, familyOf(f.Addr.Addr()))
}

// withoutServers clears all of slots but their keys, in place, and returns them.
func withoutServers(slots []serverSlot) []serverSlot {
	for i := range slots {
		slots[i] = serverSlot{key: slots[i].key}
	}
	return slots
}

// frontend splits one Frontend: the slots that it has, and the Frontend that is left to the chains;
// nil = nothing is left.
//
// A virtual server has one set of real servers for every source, and refuses if it has none. It can
// express a Route from Any, and Reject. Drop, source ranges and addresses that must not have a
// virtual server are wholly in chains. Routes before the one from Any are in chains too: a packet
// meets these first, and they let the others pass. together moves such a Frontend to the chains
// wholly.
func (sp splitter) frontend(s *rules.Service, f rules.Frontend, together bool) ([]serverSlot, *rules.Frontend) {
	last := routeFromAny(f)
	before := max(last, 0)
	wholly := last < 0 && f.Verdict != rules.Reject || len(f.Allow) > 0 || together && before > 0

	var slots []serverSlot
	inChains := wholly || before > 0
	for _, addr := range sp.addresses(f) {
		slot := serverSlot{key: slotKey(s, f, addr)}
		serves := !wholly && sp.mayServe(f.Kind, slot.key)
		if serves {
			slot.set = serverSet(f, last, slot.key.sets())
			slot.onLink = f.Kind != rules.NodePort && !sp.isHost(addr)
			if last >= 0 {
				slot.endpoints = s.Sets[f.Routes[last].Set].Endpoints
			}
		}
		if !serves || before > 0 {
			slot.bits = addr.BitLen()
		}
		if addr == loopback4.Addr() {
			slot.bits = loopback4.Bits()
		}
		inChains = inChains || !serves
		if !sp.isTaken(f.Kind, slot.key) {
			slots = append(slots, slot)
		}
	}
	if !inChains {
		return slots, nil
	}
	if !wholly && before > 0 {
		f.Routes, f.Verdict = f.Routes[:before], rules.Pass
	}
	return slots, &f
}

// isTaken reports whether a NodePort does not answer on an address, because another Frontend has
// the address and port.
func (sp splitter) isTaken(kind rules.Kind, key ServerKey) bool {
	if kind != rules.NodePort {
		return false
	}
	_, taken := slices.BinarySearchFunc(sp.taken, rules.ClaimKey{Addr: key.Addr, Protocol: uint8(key.Proto)}, rules.ClaimKey.Compare)
	return taken
}

// together reports whether the Frontends that share chains with f must be wholly in chains or not
// at all. The external Frontends of a Service and family share chains, Route by Route: if one of
// them needs the Route from Any there, all do.
func (sp splitter) together(s *rules.Service, f rules.Frontend) bool {
	if f.Kind == rules.ClusterIP {
		return false
	}
	return slices.ContainsFunc(s.Frontends, func(g rules.Frontend) bool {
		if g.Kind == rules.ClusterIP || g.Addr.Addr().Is6() != f.Addr.Addr().Is6() {
			return false
		}
		// Packets to a loopback address come from the node, so the Route from Any is not for them.
		return len(g.Allow) > 0 || slices.ContainsFunc(sp.addresses(g), func(a netip.Addr) bool {
			return !sp.mayServe(g.Kind, slotKey(s, g, a)) && !(g.Kind == rules.NodePort && a.IsLoopback())
		})
	})
}

// routeFromAny returns the index of the Route from Any; -1 = f has no such Route.
func routeFromAny(f rules.Frontend) int {
	return slices.IndexFunc(f.Routes, func(r rules.Route) bool { return r.From == rules.Any })
}

// serverSet returns the set that says how clients of a virtual server are masqueraded. A virtual
// server that refuses is in one too, because that makes it ours.
func serverSet(f rules.Frontend, fromAny int, names *familySets) string {
	always := fromAny >= 0 && f.Routes[fromAny].Masquerade == rules.Always
	switch {
	case f.Kind == rules.ClusterIP && !always:
		return names.clusterIP
	case always || fromAny < 0:
		return names.externalIP
	default:
		return names.externalIPLocal
	}
}

// addresses returns the addresses of a Frontend. NodePorts do not answer on IPv6 addresses that
// are loopback or link-local: facts leave these out, because a link-local one means nothing
// without its link. The first address of IPv4 loopback stands for all of it.
func (sp splitter) addresses(f rules.Frontend) []netip.Addr {
	if f.Kind != rules.NodePort {
		return []netip.Addr{f.Addr.Addr()}
	}
	ports := sp.facts.nodePorts
	of := ports.IPv4
	if f.Addr.Addr().Is6() {
		of = ports.IPv6
	}
	var out []netip.Addr
	whole := of.All && ports.Localhost && f.Addr.Addr().Is4()
	if whole {
		out = append(out, loopback4.Addr())
	}
	for _, a := range of.Addrs {
		if !a.IsLoopback() || ports.Localhost && !whole {
			out = append(out, a)
		}
	}
	return out
}

// slotKey returns the key of a Frontend's virtual server on one of its addresses.
func slotKey(s *rules.Service, f rules.Frontend, a netip.Addr) ServerKey {
	return ServerKey{Addr: netip.AddrPortFrom(a, f.Addr.Port()), Proto: netfilter.Proto(s.Name.IPProtocol())}
}

// mayServe reports whether a virtual server may exist for a Frontend of a Kind: not if the
// kernel refused it, the operator excludes its address, or that may be another machine's or is
// a special one. On loopback it would not answer: IPVS routes the client's packets back to the
// client.
func (sp splitter) mayServe(kind rules.Kind, key ServerKey) bool {
	a := key.Addr.Addr()
	if !a.IsValid() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a == broadcast4 || isPrivate6(a) {
		return false
	}
	_, refused := slices.BinarySearchFunc(sp.facts.config.Refused, key, compareServers)
	return !refused && !inside(sp.facts.config.Exclude, a) && !sp.mayBeNeighbour(kind, a)
}

// mayBeNeighbour reports whether an external address may belong to another machine: it is in a
// network of an interface of this machine, or an API server answers on it, and it is not an address
// of this machine. On Link it would cut this machine off from the other one. Load balancers that
// run on nodes hand out such addresses.
func (sp splitter) mayBeNeighbour(kind rules.Kind, a netip.Addr) bool {
	external := kind == rules.ExternalIP || kind == rules.LoadBalancer
	return external && (inside(sp.facts.networks, a) || sp.isAPIServer(a)) && !sp.isHost(a)
}

// isAPIServer reports whether an API server answers on an address, whatever the port: on Link the
// address would be out of reach on every port.
func (sp splitter) isAPIServer(a netip.Addr) bool {
	return slices.ContainsFunc(sp.facts.apiServers, func(s netip.AddrPort) bool { return s.Addr() == a })
}

func inside(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (sp splitter) isHost(a netip.Addr) bool {
	_, found := slices.BinarySearchFunc(sp.facts.host, a, netip.Addr.Compare)
	return found
}
