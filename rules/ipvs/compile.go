package ipvs

import (
	"net/netip"
	"reflect"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// DefaultScheduler is used where neither a Service nor the operator names another:
// round robin.
const DefaultScheduler = "rr"

// Config is what the operator and the kernel decide about virtual servers.
type Config struct {
	Scheduler string         // as ipvsadm(8) names it; "" = DefaultScheduler
	Exclude   []netip.Prefix // addresses on which there is never a virtual server of ours
	Lacks     []string       // of Schedulers, those that Services ask for and the kernel does not have: Scheduler takes their place
	Refused   []ServerKey    // virtual servers that the kernel did not take, sorted: chains take their place
	Retire    bool           // everything is spelled in chains: there is no virtual server at all

	// Families are those in use; nil = both. Of others there are no virtual servers, no
	// addresses and no set entries. The chains of others are nobody's.
	Families []netfilter.Family
}

// Compiler remembers what each Service came to. The zero value is ready for use. One
// goroutine may use it.
type Compiler struct {
	facts    facts
	pieces   []*Piece
	residual int // how many Services the last Residual had
}

// Compiled is a Ruleset in IPVS mode: what virtual servers say, and what the chains of the
// iptables backend say.
type Compiled struct {
	Pieces   []*Piece      // one for each Service, sorted by its Name; equal pointers are equal Pieces
	Residual rules.Ruleset // for the chains; a Service whose chains did not change is the same pointer as before
}

// Piece is what one Service comes to. It is never changed.
type Piece struct {
	service  *rules.Service
	residual *rules.Service // what is left to the chains; nil = nothing
	server   Server         // what its virtual servers are like
	fronts   []front
}

// facts are what the decision about a Service reads beside the Service itself. Compiler
// compares them: everything else must stay out of the decision, and what the decision does not
// use out of them.
type facts struct {
	config    Config
	nodePorts rules.NodePorts
	host      []netip.Addr   // sorted
	networks  []netip.Prefix // of the machine's interfaces

	apiServers []netip.AddrPort
}

// factsOf leaves out the machine's loopback and link-local IPv6 addresses: there is never a server
// on them, and each Pod that comes brings one.
func factsOf(rs rules.Ruleset, cfg Config) facts {
	f := facts{config: cfg, nodePorts: rs.NodePorts, networks: rs.HostNetworks, apiServers: rs.APIServers}
	f.nodePorts.IPv6.Addrs = withoutPrivate6(rs.NodePorts.IPv6.Addrs)
	f.host = withoutPrivate6(rs.HostAddrs)
	return f
}

func withoutPrivate6(addrs []netip.Addr) []netip.Addr {
	var rest []netip.Addr
	for _, a := range addrs {
		if !isPrivate6(a) {
			rest = append(rest, a)
		}
	}
	return rest
}

// isPrivate6 reports whether an address is a loopback or link-local one of IPv6.
func isPrivate6(a netip.Addr) bool { return a.Is6() && (a.IsLoopback() || a.IsLinkLocalUnicast()) }

// Compile splits a Ruleset. Services that did not change cost a comparison of pointers.
func (c *Compiler) Compile(rs rules.Ruleset, cfg Config) Compiled {
	f := factsOf(rs, cfg)
	same := reflect.DeepEqual(f, c.facts)
	c.facts = f
	split := splitter{facts: f}
	out := Compiled{Pieces: make([]*Piece, len(rs.Services)), Residual: rs}
	out.Residual.Services = make([]*rules.Service, 0, c.residual)
	old := c.pieces
	for i, s := range rs.Services {
		for len(old) > 0 && old[0].service != s && topology.CompareNames(old[0].service.Name, s.Name) < 0 {
			old = old[1:]
		}
		var before *Piece
		if len(old) > 0 && (old[0].service == s || old[0].service.Name == s.Name) {
			before, old = old[0], old[1:]
		}
		piece := before
		if !same || before == nil || before.service != s {
			piece = split.service(s)
			piece.keepPointer(before)
		}
		out.Pieces[i] = piece
		if piece.residual != nil {
			out.Residual.Services = append(out.Residual.Services, piece.residual)
		}
	}
	c.pieces, c.residual = out.Pieces, len(out.Residual.Services)
	return out
}

// keepPointer takes over the residual Service of an earlier Piece where it is equal, so
// that the chains' backend sees that nothing changed.
func (p *Piece) keepPointer(before *Piece) {
	if before != nil && reflect.DeepEqual(p.residual, before.residual) {
		p.residual = before.residual
	}
}

// State is all Pieces together.
func (c Compiled) State() State {
	u := newUnion()
	u.update(c.Pieces, nil)
	return u.state()
}

// scheduler is the one that a Service gets.
func (f facts) scheduler(s *rules.Service) string {
	switch {
	case slices.Contains(Schedulers(), s.Scheduler) && !slices.Contains(f.config.Lacks, s.Scheduler):
		return s.Scheduler
	case f.config.Scheduler != "":
		return f.config.Scheduler
	default:
		return DefaultScheduler
	}
}
