package render

import (
	"net/netip"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

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
