package render

import (
	"net/netip"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Ruleset renders a whole Ruleset in one family: Fixed with every Service's Block, in the
// order of the Ruleset.
func Ruleset(rs rules.Ruleset, o Options) Tables {
	o = o.For(rs)
	t := Fixed(rs, o)
	var own []netfilter.Chain
	entries := map[ChainID][]netfilter.Rule{}
	for _, s := range rs.Services {
		b := Service(s, o)
		for _, c := range b.Chains {
			own = append(own, c.Chain)
		}
		for _, e := range b.Entries {
			entries[e.ID()] = append(entries[e.ID()], e.Rule)
		}
	}
	for table := range netfilter.Table(len(t.Tables)) {
		chains := t.Tables[table].Chains
		for i, c := range chains {
			// Another Frontend may use a NodePort's number on an address of this machine, so the jump
			// to the NodePorts stays after the entries.
			chains[i].Rules = append(entries[ChainID{table, c.Name}], c.Rules...)
		}
	}
	t.Tables[netfilter.NAT].Chains = append(t.Tables[netfilter.NAT].Chains, own...)
	return t
}

// Fixed renders what no Service owns: the fixed chains with their static rules, health-check
// node ports, and the jumps to them. Entries of Services come before these rules. The options are
// those for the Ruleset (Options.For), or what was written last where they cannot be followed.
func Fixed(rs rules.Ruleset, o Options) Tables {
	t := Tables{Family: o.Family}
	t.Tables[netfilter.Filter] = TableRules{Chains: filterChains(rs, o), Jumps: filterJumps(o)}
	t.Tables[netfilter.NAT] = TableRules{Chains: natChains(rs, o), Jumps: natJumps(o)}
	return t
}

func filterChains(rs rules.Ruleset, o Options) []netfilter.Chain {
	name := o.Names.Chain
	external := netfilter.Chain{Name: name(netfilter.ChainExternalServices)}
	if o.IPVS {
		external.Rules = []netfilter.Rule{jump("kubernetes virtual servers; NOTE: this must be the last rule in this chain", name(netfilter.ChainIPVSFilter))}
	}
	chains := []netfilter.Chain{
		{Name: name(netfilter.ChainNodePorts), Rules: healthCheckRules(rs, o.Family)},
		{Name: name(netfilter.ChainServices)},
		external,
		{Name: name(netfilter.ChainForward), Rules: forwardRules(o)},
		{Name: name(netfilter.ChainProxyFirewall)},
	}
	if o.IPVS {
		chains = append(chains, netfilter.Chain{Name: name(netfilter.ChainIPVSFilter), Rules: ipvsFilterRules(o)})
	}
	if o.LocalDNS.IsValid() {
		chains = append(chains, localDNSFilter(rs.LocalDNS, o))
	}
	if o.LocalhostNodePorts {
		chains = append(chains, firewallChainOfKubelet())
	}
	return chains
}

func natChains(rs rules.Ruleset, o Options) []netfilter.Chain {
	services := netfilter.Chain{Name: o.serviceChain(), Rules: nodePortJumps(rs.NodePorts, o)}
	chains := []netfilter.Chain{services}
	if o.IPVS {
		chains = []netfilter.Chain{{Name: o.Names.Chain(netfilter.ChainServices), Rules: ipvsServicesRules(o)}, services}
	}
	if o.LocalDNS.IsValid() {
		chains = append(chains, localDNSRedirect(o))
	}
	return append(chains,
		netfilter.Chain{Name: o.Names.Chain(netfilter.ChainNodePorts)},
		netfilter.Chain{Name: o.Names.Chain(netfilter.ChainPostrouting), Rules: append(hairpinRules(o), postroutingRules(o)...)},
		netfilter.Chain{Name: o.Names.Chain(netfilter.ChainMarkMasq), Rules: []netfilter.Rule{{Target: netfilter.TargetMark, Set: o.mark()}}},
	)
}

// mark returns the packet mark that asks for masquerading.
func (o Options) mark() netfilter.Mark {
	m := uint32(1) << (o.MasqueradeBit & 31)
	return netfilter.Mark{Value: m, Mask: m}
}

// loopback returns the addresses on which NodePorts answer only with LocalhostNodePorts.
func loopback(f netfilter.Family) netip.Prefix {
	if f == netfilter.IPv6 {
		return netip.PrefixFrom(netip.IPv6Loopback(), 128)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)
}

func forwardRules(o Options) []netfilter.Rule {
	var list []netfilter.Rule
	if o.DropInvalid {
		drop := netfilter.Rule{CTState: netfilter.CTInvalid, Target: netfilter.TargetDrop}
		if o.NFAcct {
			drop.NFAcct = AcctInvalidDropped
		}
		list = append(list, drop)
	}
	return append(list,
		netfilter.Rule{Comment: "kubernetes forwarding rules", Mark: o.mark(), Target: netfilter.TargetAccept},
		netfilter.Rule{Comment: "kubernetes forwarding conntrack rule", CTState: netfilter.CTRelated | netfilter.CTEstablished, Target: netfilter.TargetAccept},
	)
}

// postroutingRules clear the mark before they masquerade, so that a packet that passes again, for
// example through a tunnel, is not masqueraded twice.
func postroutingRules(o Options) []netfilter.Rule {
	return []netfilter.Rule{
		{Mark: o.mark(), NotMark: true, Target: netfilter.TargetReturn},
		{Target: netfilter.TargetMark, Set: netfilter.Mark{Value: o.mark().Value}},
		{Comment: "kubernetes service traffic requiring SNAT", Target: netfilter.TargetMasquerade, Random: o.RandomFully},
	}
}

// firewallChainOfKubelet equals what the kubelet writes, so that neither writes it twice.
func firewallChainOfKubelet() netfilter.Chain {
	return netfilter.Chain{Name: netfilter.ChainFirewall, Rules: []netfilter.Rule{{
		Comment: "block incoming localnet connections",
		Dst:     loopback(netfilter.IPv4), Src: loopback(netfilter.IPv4), NotSrc: true,
		CTState: netfilter.CTRelated | netfilter.CTEstablished | netfilter.CTDNAT, NotCTState: true,
		Target: netfilter.TargetDrop,
	}}}
}

// nodePortJumps lead packets to this machine's own addresses to the NodePorts.
func nodePortJumps(n rules.NodePortScope, o Options) []netfilter.Rule {
	addrs := n.IPv4
	if o.Family == netfilter.IPv6 {
		addrs = n.IPv6
	}
	last := jump("kubernetes service nodeports; NOTE: this must be the last rule in this chain", o.Names.Chain(netfilter.ChainNodePorts))
	if addrs.All {
		last.DstLocal = true
		if !o.LocalhostNodePorts {
			last.Dst, last.NotDst = loopback(o.Family), true
		}
		return []netfilter.Rule{last}
	}
	list := make([]netfilter.Rule, len(addrs.Addrs))
	for i, a := range addrs.Addrs {
		list[i] = last
		list[i].Dst = hostPrefix(a)
	}
	return list
}

// healthCheckRules open the health-check node ports. As in kube-proxy, there is one rule for each
// port of the Service.
func healthCheckRules(rs rules.Ruleset, f netfilter.Family) []netfilter.Rule {
	var list []netfilter.Rule
	for _, hc := range rs.HealthChecks {
		if hc.IPv6 != (f == netfilter.IPv6) {
			continue
		}
		for _, name := range portNames(rs.Services, hc.Service) {
			list = append(list, netfilter.Rule{
				Comment: name + " health check node port",
				Proto:   netfilter.TCP, DstPort: hc.Port, Target: netfilter.TargetAccept,
			})
		}
	}
	return list
}

// portNames returns the printed names of a Service's ports, or its own name if it has no port.
func portNames(sorted []*rules.Service, name types.NamespacedName) []string {
	var names []string
	for _, s := range PortsOf(sorted, name) {
		names = append(names, s.Name.String())
	}
	if len(names) == 0 {
		names = []string{topology.ServicePortName{NamespacedName: name}.String()}
	}
	return names
}

// The chains of a DNS server on this node. A packet meets them before the Services, in any mode.

// localDNSRedirect leads what is in the set to the server. An empty set is the way back.
func localDNSRedirect(o Options) netfilter.Chain {
	c := netfilter.Chain{Name: o.Names.Chain(netfilter.ChainLocalDNS)}
	for _, proto := range []netfilter.Proto{netfilter.UDP, netfilter.TCP} {
		c.Rules = append(c.Rules, netfilter.Rule{
			Comment: "while the DNS server of this node answers", Proto: proto, MatchSet: o.inSet(netfilter.SetLocalDNS),
			Target: netfilter.TargetDNAT, DNAT: netip.AddrPortFrom(o.LocalDNS, rules.PortDNS),
		})
	}
	return c
}

// localDNSFilter refuses queries from outside this machine to the server's own address. Redirected
// ones are always served, whatever the addresses of Pods are.
func localDNSFilter(l rules.LocalDNS, o Options) netfilter.Chain {
	c := netfilter.Chain{Name: o.Names.Chain(netfilter.ChainLocalDNS), Rules: []netfilter.Rule{
		{Comment: "redirected queries", CTState: netfilter.CTDNAT, Target: netfilter.TargetReturn},
		{Comment: "this machine", SrcLocal: true, Target: netfilter.TargetReturn},
	}}
	for _, pods := range l.Clients {
		if pods.Addr().Is6() == o.LocalDNS.Is6() {
			c.Rules = append(c.Rules, netfilter.Rule{Comment: "pods of this node", Src: pods, Target: netfilter.TargetReturn})
		}
	}
	c.Rules = append(c.Rules, netfilter.Rule{Comment: "another machine", Target: netfilter.TargetReject})
	return c
}
