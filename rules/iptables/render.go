package iptables

import (
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Render spells a Ruleset in one family, whole: what RenderShared says with every
// Service's Block put in, in the order of the Ruleset.
func Render(rs rules.Ruleset, o Options) Tables {
	o = o.For(rs)
	t := RenderShared(rs, o)
	var own []Chain
	entries := map[Entry][]Rule{} // keyed by Table and Chain only
	for _, s := range rs.Services {
		b := RenderService(s, o)
		own = append(own, b.Chains...)
		for _, e := range b.Entries {
			key := Entry{Table: e.Table, Chain: e.Chain}
			entries[key] = append(entries[key], e.Rule)
		}
	}
	for table := range Table(len(t.Tables)) {
		chains := t.Tables[table].Chains
		for i, c := range chains {
			// A NodePort may have the number of another Frontend's port on an address of
			// this machine, so the jump to all of them stays behind the entries.
			chains[i].Rules = append(entries[Entry{Table: table, Chain: c.Name}], c.Rules...)
		}
	}
	t.Tables[NAT].Chains = append(t.Tables[NAT].Chains, own...)
	return t
}

// RenderShared spells what does not belong to one Service: the fixed chains with their
// static rules, health-check node ports, and the jumps to them. The Services' entries are
// not in it; they go in front of the rules here.
func RenderShared(rs rules.Ruleset, o Options) Tables {
	o = o.For(rs)
	t := Tables{Family: o.Family}
	t.Tables[Filter] = TableRules{Chains: filterChains(rs, o), Jumps: filterJumps(o)}
	t.Tables[NAT] = TableRules{Chains: natChains(rs, o), Jumps: natJumps(o.Names)}
	return t
}

func filterChains(rs rules.Ruleset, o Options) []Chain {
	external := Chain{Name: o.Names.chain(chainExternalServices)}
	if o.IPVS {
		external.Rules = []Rule{jump("kubernetes virtual servers; NOTE: this must be the last rule in this chain", o.Names.chain(chainIPVSFilter))}
	}
	chains := []Chain{
		{Name: o.Names.chain(chainNodePorts), Rules: healthCheckRules(rs, o.Family)},
		{Name: o.Names.chain(chainServices)},
		external,
		{Name: o.Names.chain(chainForward), Rules: forwardRules(o)},
		{Name: o.Names.chain(chainProxyFirewall)},
	}
	if o.IPVS {
		chains = append(chains, Chain{Name: o.Names.chain(chainIPVSFilter), Rules: ipvsFilterRules(o)})
	}
	if o.LocalhostNodePorts {
		chains = append(chains, firewallChainOfKubelet())
	}
	return chains
}

func natChains(rs rules.Ruleset, o Options) []Chain {
	services := Chain{Name: o.serviceChain(), Rules: nodePortJumps(rs.NodePorts, o)}
	chains := []Chain{services}
	if o.IPVS {
		chains = []Chain{{Name: o.Names.chain(chainServices), Rules: ipvsServicesRules(o)}, services}
	}
	return append(chains,
		Chain{Name: o.Names.chain(chainNodePorts)},
		Chain{Name: o.Names.chain(chainPostrouting), Rules: append(hairpinRules(o), postroutingRules(o)...)},
		Chain{Name: o.Names.chain(chainMarkMasq), Rules: []Rule{{Target: TargetMark, Set: o.mark()}}},
	)
}

// mark is the packet mark that asks for masquerading.
func (o Options) mark() Mark {
	m := uint32(1) << (o.MasqueradeBit & 31)
	return Mark{Value: m, Mask: m}
}

// loopback is what NodePorts leave out unless they are asked not to.
func (f Family) loopback() netip.Prefix {
	if f == IPv6 {
		return netip.PrefixFrom(netip.IPv6Loopback(), 128)
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{127}), 8)
}

func forwardRules(o Options) []Rule {
	var list []Rule
	if o.DropInvalid {
		drop := Rule{CTState: CTInvalid, Target: TargetDrop}
		if o.NFAcct {
			drop.NFAcct = acctInvalidDropped
		}
		list = append(list, drop)
	}
	return append(list,
		Rule{Comment: "kubernetes forwarding rules", Mark: o.mark(), Target: TargetAccept},
		Rule{Comment: "kubernetes forwarding conntrack rule", CTState: CTRelated | CTEstablished, Target: TargetAccept},
	)
}

// postroutingRules clear the mark before they masquerade: a packet that comes by again, as
// through a tunnel, is not masqueraded twice.
func postroutingRules(o Options) []Rule {
	return []Rule{
		{Mark: o.mark(), NotMark: true, Target: TargetReturn},
		{Target: TargetMark, Set: Mark{Value: o.mark().Value}},
		{Comment: "kubernetes service traffic requiring SNAT", Target: TargetMasquerade, Random: o.RandomFully},
	}
}

// firewallChainOfKubelet is equal to what the kubelet writes: whoever comes first, the
// other finds it there.
func firewallChainOfKubelet() Chain {
	return Chain{Name: chainFirewall, Rules: []Rule{{
		Comment: "block incoming localnet connections",
		Dst:     IPv4.loopback(), Src: IPv4.loopback(), NotSrc: true,
		CTState: CTRelated | CTEstablished | CTDNAT, NotCTState: true,
		Target: TargetDrop,
	}}}
}

// nodePortJumps send what goes to this machine's own addresses to the NodePorts.
func nodePortJumps(n rules.NodePortScope, o Options) []Rule {
	addrs := n.IPv4
	if o.Family == IPv6 {
		addrs = n.IPv6
	}
	jump := Rule{
		Comment: "kubernetes service nodeports; NOTE: this must be the last rule in this chain",
		Target:  TargetJump, Jump: o.Names.chain(chainNodePorts),
	}
	if addrs.All {
		jump.DstLocal = true
		if !o.LocalhostNodePorts {
			jump.Dst, jump.NotDst = o.Family.loopback(), true
		}
		return []Rule{jump}
	}
	list := make([]Rule, len(addrs.Addrs))
	for i, a := range addrs.Addrs {
		list[i] = jump
		list[i].Dst = hostPrefix(a)
	}
	return list
}

// healthCheckRules open the health-check node ports, once for each port of the Service, as
// kube-proxy does.
func healthCheckRules(rs rules.Ruleset, f Family) []Rule {
	var list []Rule
	for _, hc := range rs.HealthChecks {
		if hc.IPv6 != (f == IPv6) {
			continue
		}
		for _, name := range portsOf(rs.Services, hc.Service) {
			list = append(list, Rule{
				Comment: name + " health check node port",
				Proto:   TCP, DstPort: hc.Port, Target: TargetAccept,
			})
		}
	}
	return list
}

// portsOf are the printed names of a Service's ports, or its own name where no port of it
// is to be found.
func portsOf(sorted []*rules.Service, name types.NamespacedName) []string {
	at, _ := slices.BinarySearchFunc(sorted, name, func(s *rules.Service, n types.NamespacedName) int {
		if c := strings.Compare(s.Name.Namespace, n.Namespace); c != 0 {
			return c
		}
		return strings.Compare(s.Name.Name, n.Name)
	})
	var names []string
	for ; at < len(sorted) && sorted[at].Name.NamespacedName == name; at++ {
		names = append(names, sorted[at].Name.String())
	}
	if len(names) == 0 {
		names = []string{topology.ServicePortName{NamespacedName: name}.String()}
	}
	return names
}

// hostPrefix is the prefix of one address.
func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
