package ipvs

import (
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// front is one address and port of a Service: in a virtual server, in chains, or in both.
type front struct {
	key       ServerKey
	kind      rules.Kind
	bits      int              // length of the network in SetChains; 0 = chains have nothing on it
	set       string           // which set has its virtual server; "" = there is none
	endpoints []netip.AddrPort // the real servers; none = it refuses
	onLink    bool             // the virtual server needs its address on Link
}

// splitter draws the line between virtual servers and chains.
type splitter struct{ facts facts }

// loopback4 is where NodePorts answer for the node's own processes.
var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// broadcast4 is everybody on the link.
var broadcast4 = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func (sp splitter) service(s *rules.Service) *Piece {
	p := &Piece{service: s, server: Server{Scheduler: sp.facts.scheduler(s), Affinity: s.Affinity}}
	rest := *s
	rest.Frontends = nil
	for i, f := range s.Frontends {
		fronts, chains := sp.frontend(s, f, sp.together(s, f))
		if sp.facts.config.Retire || !sp.inUse(f) {
			fronts, chains = retired(fronts), &s.Frontends[i]
		}
		p.fronts = append(p.fronts, fronts...)
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

// inUse reports whether the family of a Frontend is in use.
func (sp splitter) inUse(f rules.Frontend) bool {
	families := sp.facts.config.Families
	family := ServerKey{Addr: f.Addr}.family()
	return families == nil || slices.Contains(families, family)
}

// retired keeps of fronts only which they are.
func retired(fronts []front) []front {
	for i, f := range fronts {
		fronts[i] = front{key: f.key, kind: f.kind}
	}
	return fronts
}

// frontend decides about one Frontend: what virtual servers say, and as which Frontend the
// rest goes to the chains; nil = there is no rest.
//
// A virtual server has one set of real servers and no verdict but refusal. So it can say a
// Route from Any, and Reject. Drop, source ranges and addresses on which there must be none
// are wholly in chains. Routes that stand before the one from Any are in chains that a
// packet meets first, and that let the others pass. together moves such a Frontend to the
// chains wholly.
func (sp splitter) frontend(s *rules.Service, f rules.Frontend, together bool) ([]front, *rules.Frontend) {
	last := routeFromAny(f)
	before := max(last, 0)
	wholly := last < 0 && f.Verdict != rules.Reject || len(f.Allow) > 0 || together && before > 0

	var fronts []front
	inChains := wholly || before > 0
	for _, addr := range sp.addresses(f) {
		fr := front{key: keyOf(s, f, addr), kind: f.Kind}
		serves := !wholly && sp.mayServe(f.Kind, fr.key)
		if serves {
			fr.set = serverSet(f, last)
			fr.onLink = f.Kind != rules.NodePort && !sp.isHost(addr)
			if last >= 0 {
				fr.endpoints = s.Sets[f.Routes[last].Set].Endpoints
			}
		}
		if !serves || before > 0 {
			fr.bits = addr.BitLen()
		}
		if addr == loopback4.Addr() {
			fr.bits = loopback4.Bits()
		}
		inChains = inChains || !serves
		fronts = append(fronts, fr)
	}
	if !inChains {
		return fronts, nil
	}
	if !wholly && before > 0 {
		f.Routes, f.Verdict = f.Routes[:before], rules.Pass
	}
	return fronts, &f
}

// together reports whether the Frontends that share chains with f have to be in chains
// wholly or not at all. The external Frontends of a Service and family share theirs, Route
// by Route: where one of them needs the Route from Any in them, all do.
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
			return !sp.mayServe(g.Kind, keyOf(s, g, a)) && !(g.Kind == rules.NodePort && a.IsLoopback())
		})
	})
}

// routeFromAny is the index of the Route that takes all that is left; -1 if there is none.
func routeFromAny(f rules.Frontend) int {
	return slices.IndexFunc(f.Routes, func(r rules.Route) bool { return r.From == rules.Any })
}

// serverSet is the set that says how clients of a virtual server are masqueraded. Who is
// refused is in one all the same: it makes the server ours.
func serverSet(f rules.Frontend, fromAny int) string {
	always := fromAny >= 0 && f.Routes[fromAny].Masquerade == rules.Always
	switch {
	case f.Kind == rules.ClusterIP && !always:
		return netfilter.SetClusterIP
	case always || fromAny < 0:
		return netfilter.SetExternalIP
	default:
		return netfilter.SetExternalIPLocal
	}
}

// addresses are those of a Frontend. NodePorts do not answer on loopback and link-local IPv6
// addresses, which facts do not have: the kernel cannot tell the latter apart without a link. All of
// IPv4 loopback is its first address.
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

// keyOf is the virtual server of a Frontend on one of its addresses.
func keyOf(s *rules.Service, f rules.Frontend, a netip.Addr) ServerKey {
	return ServerKey{Addr: netip.AddrPortFrom(a, f.Addr.Port()), Proto: netfilter.Proto(s.Name.IPProtocol())}
}

// mayServe reports whether there may be such a virtual server. On loopback it would not
// answer: IPVS routes the client's packets back to itself.
func (sp splitter) mayServe(kind rules.Kind, key ServerKey) bool {
	a := key.Addr.Addr()
	if !a.IsValid() || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || a == broadcast4 || isPrivate6(a) {
		return false
	}
	_, refused := slices.BinarySearchFunc(sp.facts.config.Refused, key, compareServers)
	return !refused && !inside(sp.facts.config.Exclude, a) && !sp.mayBeNeighbour(kind, a)
}

// mayBeNeighbour reports whether an external address may be another machine's: it lies in a network
// that an interface of this machine is in, and is not this machine's. On Link it would cut this
// machine off from the other. Load balancers that run on nodes give out such addresses. So may an
// address be that an API server answers on.
func (sp splitter) mayBeNeighbour(kind rules.Kind, a netip.Addr) bool {
	external := kind == rules.ExternalIP || kind == rules.LoadBalancer
	return external && (inside(sp.facts.networks, a) || sp.isAPIServer(a)) && !sp.isHost(a)
}

// isAPIServer reports whether an API server answers on an address. On Link it would be out of
// reach, on every port, whichever port a Service names.
func (sp splitter) isAPIServer(a netip.Addr) bool {
	return slices.ContainsFunc(sp.facts.apiServers, func(s netip.AddrPort) bool { return s.Addr() == a })
}

// inside reports whether an address is inside any of some prefixes.
func inside(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// isHost reports whether an address is the machine's own.
func (sp splitter) isHost(a netip.Addr) bool {
	_, found := slices.BinarySearchFunc(sp.facts.host, a, netip.Addr.Compare)
	return found
}
