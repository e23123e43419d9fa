package render

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Service renders one port of a Service in one family, with Options from Options.For. It
// leaves out what is not needed: a set without a Route has no chain, and a Service without
// Frontends in the family has an empty Block.
func Service(s *rules.Service, o Options) Block {
	if o.LacksMatch(s) {
		s = Reject(s)
	}
	sp := serviceSpeller{
		service: s, options: o,
		name: s.Name.String(), proto: netfilter.Proto(s.Name.IPProtocol()),
		heads: make([][]netfilter.Rule, len(s.Sets)), used: make([]bool, len(s.Sets)),
	}
	for i := range s.Frontends {
		if f := &s.Frontends[i]; f.Addr.Addr().Is6() == (o.Family == netfilter.IPv6) {
			sp.frontend(f)
		}
	}
	sp.policyChains()
	sp.externalChains()
	sp.endpointChains()
	return sp.block
}

// serviceSpeller collects one Block.
type serviceSpeller struct {
	service *rules.Service
	options Options
	name    string // as comments print it
	proto   netfilter.Proto

	external []rules.Route      // of the external Frontends: all have the same, but some may lack the last
	allow    []netip.Prefix     // of the LoadBalancer Frontends: all have the same
	heads    [][]netfilter.Rule // by set: rules in front of its endpoints
	used     []bool             // by set: a Route leads to it

	block Block
}

func (sp *serviceSpeller) frontend(f *rules.Frontend) {
	for _, r := range f.Routes {
		sp.used[r.Set] = true
	}
	if f.Kind == rules.ClusterIP {
		sp.clusterIP(f)
	} else {
		sp.externalFrontend(f)
	}
}

func (sp *serviceSpeller) match(f *rules.Frontend, comment string) netfilter.Rule {
	r := netfilter.Rule{Comment: comment, Proto: sp.proto, DstPort: f.Addr.Port()}
	if sp.options.LacksMatch(sp.service) {
		r.DstPort = 0 // all ports, because the kernel cannot tell them apart
	}
	if f.Kind != rules.NodePort {
		r.Dst = hostPrefix(f.Addr.Addr())
	}
	return r
}

func (sp *serviceSpeller) clusterIP(f *rules.Frontend) {
	i := slices.IndexFunc(f.Routes, func(r rules.Route) bool { return r.From == rules.Any })
	if i < 0 {
		sp.verdict(f, sp.chainOf(netfilter.ChainServices))
		return
	}
	route := f.Routes[i]
	match := sp.match(f, sp.name+" cluster IP")
	sp.heads[route.Set] = sp.masquerade(sp.heads[route.Set], match, route.Masquerade)
	sp.enter(netfilter.NAT, sp.options.serviceChain(), jumpTo(match, sp.setChain(route.Set)))
}

func (sp *serviceSpeller) externalFrontend(f *rules.Frontend) {
	if f.AdmitsNobody() {
		// The node's own packets are dropped like those of every source outside the ranges.
		sp.dropByFirewall(f, " traffic not accepted: loadBalancerSourceRanges cannot be read")
		return
	}
	if !slices.ContainsFunc(f.Routes, func(r rules.Route) bool { return r.From == rules.Any }) {
		sp.verdict(f, sp.chainOf(netfilter.ChainExternalServices))
		// OUTPUT does not jump to that chain. The node's packets to its own addresses, and so to its
		// NodePorts, pass INPUT, which does; the rest would leave the machine.
		if sp.service.Closed && f.Verdict != rules.Drop && f.Kind != rules.NodePort {
			sp.verdict(f, sp.chainOf(netfilter.ChainServices))
		}
	}
	if len(f.Routes) == 0 {
		return
	}
	// In IPVS mode the Route from Any may be in a virtual server for one Frontend and in chains for
	// another. The chain that both share then has it.
	if len(f.Routes) > len(sp.external) {
		sp.external = f.Routes
	}
	entry := externalChain(sp.options.Names, sp.service.Name)
	what := " external IP"
	switch f.Kind {
	case rules.NodePort:
		sp.nodePort(f, entry)
		return
	case rules.LoadBalancer:
		what = " loadbalancer IP"
		if len(f.Allow) > 0 {
			sp.allow = f.Allow
			entry = firewallChain(sp.options.Names, sp.service.Name)
			sp.dropByFirewall(f, " traffic not accepted by "+entry)
		}
	}
	sp.enter(netfilter.NAT, sp.options.serviceChain(), jumpTo(sp.match(f, sp.name+what), entry))
}

func (sp *serviceSpeller) dropByFirewall(f *rules.Frontend, why string) {
	drop := sp.match(f, sp.name+why)
	drop.Target = netfilter.TargetDrop
	sp.enter(netfilter.Filter, sp.chainOf(netfilter.ChainProxyFirewall), drop)
}

func (sp *serviceSpeller) nodePort(f *rules.Frontend, entry string) {
	jump := jumpTo(sp.match(f, sp.name), entry)
	if sp.options.LocalhostNodePorts && sp.options.NFAcct {
		counted := jump
		counted.Dst, counted.NFAcct = loopback(sp.options.Family), AcctLocalhostAccepted
		sp.enter(netfilter.NAT, sp.chainOf(netfilter.ChainNodePorts), counted)
	}
	sp.enter(netfilter.NAT, sp.chainOf(netfilter.ChainNodePorts), jump)
}

// verdict rejects or drops packets without a Route from Any. It does so in filter, because nat
// cannot, and only packets that nat did not translate still have the Frontend's address there.
func (sp *serviceSpeller) verdict(f *rules.Frontend, chain string) {
	var r netfilter.Rule
	switch f.Verdict {
	case rules.Reject, rules.Quarantine:
		r = sp.match(f, sp.options.refusedBecause(sp.service, f.Verdict))
		r.Target = netfilter.TargetReject
	case rules.Drop:
		r = sp.match(f, sp.name+" has no local endpoints")
		r.Target = netfilter.TargetDrop
	default:
		return
	}
	if f.Kind == rules.NodePort {
		if sp.options.LacksMatch(sp.service) {
			return // it would reject SCTP to every listener of this machine
		}
		sp.ownAddress(&r)
	}
	sp.enter(netfilter.Filter, chain, r)
}

// ownAddress restricts a filter rule to addresses on which NodePorts are rejected: every local one,
// as in kube-proxy. In IPVS mode the addresses of all virtual servers are local, so a set decides.
func (sp *serviceSpeller) ownAddress(r *netfilter.Rule) {
	if sp.options.IPVS {
		r.MatchSet = sp.options.inSet(netfilter.SetChains)
	} else {
		r.DstLocal = true
	}
}

// masquerade returns list with the rules that mark the packets of a match, if m asks for any.
func (sp *serviceSpeller) masquerade(list []netfilter.Rule, match netfilter.Rule, m rules.Masquerade) []netfilter.Rule {
	match = jumpTo(match, sp.chainOf(netfilter.ChainMarkMasq))
	switch pods := sp.options.Pods; {
	case m == rules.Always:
		return append(list, match)
	case m == rules.OffCluster && pods.tells() && !pods.everybody():
		return append(list, pods.narrow(match, false))
	default:
		return list
	}
}

// tells reports whether Pods can be told apart at all.
func (p PodMatch) tells() bool { return p.InInterface != "" || p.Prefix.IsValid() }

// everybody reports whether every source counts as a Pod. Then iptables-nft refuses a rule about
// the other sources, because no other source exists.
func (p PodMatch) everybody() bool { return p.InInterface == "" && p.Prefix.Bits() == 0 }

// narrow restricts a rule to packets of this node's Pods, or to all others.
func (p PodMatch) narrow(r netfilter.Rule, pods bool) netfilter.Rule {
	switch {
	case p.InInterface != "":
		r.InInterface, r.NotInInterface = p.InInterface, !pods
	case !p.everybody():
		r.Src, r.NotSrc = p.Prefix, !pods
	}
	return r
}

// policyChains adds the chains that choose an endpoint.
func (sp *serviceSpeller) policyChains() {
	for _, policy := range []rules.TrafficPolicy{rules.Cluster, rules.Local} {
		for i, set := range sp.service.Sets {
			if sp.used[i] && set.Policy == policy {
				sp.chain(sp.setChain(i), sp.choose(sp.heads[i], set.Endpoints))
			}
		}
	}
}

// sticky reports whether clients keep their endpoint: the Service asks for it and the kernel can.
func (sp *serviceSpeller) sticky() bool {
	return sp.service.Affinity > 0 && !sp.options.WithoutRecent
}

// choose adds to a list the rules that send a packet to the last endpoint of its client, or else to
// a random one. A rule is large, so the list is allocated once.
func (sp *serviceSpeller) choose(list []netfilter.Rule, endpoints []netip.AddrPort) []netfilter.Rule {
	lost := ""
	if sp.service.Affinity > 0 && !sp.sticky() {
		lost = CommentNoAffinity
	}
	sticky, random := len(list), len(list)
	if sp.sticky() {
		random += len(endpoints)
	}
	added := random + len(endpoints) - len(list)
	list = slices.Grow(list, added)[:len(list)+added]
	for i, e := range endpoints {
		comment := ""
		if lost != "" || !sp.options.FewComments { // other processes read what is lost
			comment = sp.name + " -> " + e.String() + lost
		}
		r := jumpTo(netfilter.Rule{Comment: comment}, EndpointChain(sp.options.Names, sp.service.Name, e))
		if sp.sticky() {
			again := r
			again.Recent = netfilter.Recent{
				Name: r.Jump, Op: netfilter.RecentCheck, Reap: true,
				Seconds: uint32(sp.service.Affinity / time.Second),
			}
			list[sticky+i] = again
		}
		if left := len(endpoints) - i; left > 1 {
			r.Probability = netfilter.Probability(left)
		}
		list[random+i] = r
	}
	return list
}

// externalChains adds the entry chain of the external Frontends and the firewall before it.
func (sp *serviceSpeller) externalChains() {
	if len(sp.external) == 0 {
		return
	}
	var list []netfilter.Rule
	for _, route := range sp.external {
		list = append(list, sp.externalRoute(route)...)
	}
	entry := externalChain(sp.options.Names, sp.service.Name)
	sp.chain(entry, list)
	if len(sp.allow) == 0 {
		return
	}
	list = nil
	for _, from := range sp.allow {
		list = append(list, jumpTo(netfilter.Rule{Comment: sp.name + " loadbalancer IP", Src: from}, entry))
	}
	list = append(list, netfilter.Rule{Comment: "other traffic to " + sp.name + " will be dropped by " + sp.chainOf(netfilter.ChainProxyFirewall)})
	sp.chain(firewallChain(sp.options.Names, sp.service.Name), list)
}

func (sp *serviceSpeller) externalRoute(route rules.Route) []netfilter.Rule {
	to, what := sp.setChain(route.Set), sp.name+" external destinations"
	switch route.From {
	case rules.Pods:
		if !sp.options.Pods.tells() {
			return nil
		}
		match := sp.options.Pods.narrow(netfilter.Rule{Comment: "pod traffic for " + what}, true)
		return append(sp.masquerade(nil, match, route.Masquerade), jumpTo(match, to))
	case rules.Node:
		list := sp.masquerade(nil, netfilter.Rule{Comment: "masquerade LOCAL traffic for " + what, SrcLocal: true}, route.Masquerade)
		return append(list, jumpTo(netfilter.Rule{Comment: "route LOCAL traffic for " + what, SrcLocal: true}, to))
	default:
		list := sp.masquerade(nil, netfilter.Rule{Comment: "masquerade traffic for " + what}, route.Masquerade)
		return append(list, jumpTo(netfilter.Rule{}, to))
	}
}

// endpointChains adds a chain for each endpoint with a Route.
func (sp *serviceSpeller) endpointChains() {
	var all []netip.AddrPort
	for i, set := range sp.service.Sets {
		if sp.used[i] {
			all = append(all, set.Endpoints...)
		}
	}
	slices.SortFunc(all, func(a, b netip.AddrPort) int { return cmp.Compare(a.String(), b.String()) })
	comment := sp.name
	if sp.options.FewComments {
		comment = ""
	}
	for _, e := range slices.Compact(all) {
		name := EndpointChain(sp.options.Names, sp.service.Name, e)
		hairpin := netfilter.Rule{Comment: comment, Src: hostPrefix(e.Addr()), Target: netfilter.TargetJump, Jump: sp.chainOf(netfilter.ChainMarkMasq)}
		dnat := netfilter.Rule{Comment: comment, Proto: sp.proto, Target: netfilter.TargetDNAT, DNAT: e}
		if sp.sticky() {
			dnat.Recent = netfilter.Recent{Name: name, Op: netfilter.RecentSet}
		}
		sp.chain(name, []netfilter.Rule{hairpin, dnat})
	}
}

func (sp *serviceSpeller) setChain(i int) string {
	return TrafficPolicyChain(sp.options.Names, sp.service.Name, sp.service.Sets[i].Policy)
}

// chainOf returns the name of a fixed chain.
func (sp *serviceSpeller) chainOf(kube string) string { return sp.options.Names.Chain(kube) }

func (sp *serviceSpeller) chain(name string, list []netfilter.Rule) {
	sp.block.Chains = append(sp.block.Chains, TableChain{netfilter.NAT, netfilter.Chain{Name: name, Rules: list}})
}

func (sp *serviceSpeller) enter(t netfilter.Table, chain string, r netfilter.Rule) {
	sp.block.Entries = append(sp.block.Entries, Entry{Table: t, Chain: chain, Rule: r})
}

func jumpTo(r netfilter.Rule, chain string) netfilter.Rule {
	r.Target, r.Jump = netfilter.TargetJump, chain
	return r
}

// PortsOf returns the ports of one Service in a sorted list.
func PortsOf(sorted []*rules.Service, name types.NamespacedName) []*rules.Service {
	first, _ := slices.BinarySearchFunc(sorted, name, func(s *rules.Service, n types.NamespacedName) int {
		return topology.CompareServices(s.Name.NamespacedName, n)
	})
	end := first
	for end < len(sorted) && sorted[end].Name.NamespacedName == name {
		end++
	}
	return sorted[first:end]
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
