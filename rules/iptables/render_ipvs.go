package iptables

import "gridproxy/rules/netfilter"

// The skeleton of IPVS mode. A packet to a virtual server passes nat and filter with the
// server's address as its destination, which is local here; IPVS takes it behind filter.

// inSet matches packets whose destination, address and port, is in a set.
func (o Options) inSet(name string) netfilter.SetMatch {
	return netfilter.SetMatch{Name: netfilter.SetName(o.Family, name), Fields: "dst,dst"}
}

// serviceChain is the chain of nat that holds the Services' entries.
func (o Options) serviceChain() string {
	if o.IPVS {
		return o.Names.Chain(netfilter.ChainIPVSChains)
	}
	return o.Names.Chain(netfilter.ChainServices)
}

// ipvsServicesRules lead to what chains decide and mark what is to be masqueraded behind
// IPVS. The node's own packets to a cluster IP have that very address as their source,
// whatever the detector makes of it, and no answer would come back to it.
func ipvsServicesRules(o Options) []netfilter.Rule {
	masquerade := jumpTo(netfilter.Rule{Comment: "kubernetes cluster IPs, masquerade", MatchSet: o.inSet(netfilter.SetClusterIP)}, o.Names.Chain(netfilter.ChainMarkMasq))
	list := []netfilter.Rule{jumpTo(netfilter.Rule{
		Comment: "kubernetes services that a virtual server cannot serve alone", MatchSet: o.inSet(netfilter.SetChains),
	}, o.Names.Chain(netfilter.ChainIPVSChains))}
	if o.Pods.tells() && !o.Pods.everybody() {
		list = append(list, o.Pods.narrow(masquerade, false))
	}
	own := masquerade
	own.Comment, own.SrcLocal = "kubernetes cluster IPs, masquerade LOCAL traffic", true
	return append(list, own,
		jumpTo(netfilter.Rule{Comment: "kubernetes external addresses, masquerade", MatchSet: o.inSet(netfilter.SetExternalIP)}, o.Names.Chain(netfilter.ChainMarkMasq)))
}

// ipvsFilterRules refuse what goes to the address of a virtual server, but to no server:
// what else listens on this machine must not answer there. The address of a Service that has
// verdicts only may be local because of another port, so their entries are met first.
func ipvsFilterRules(o Options) []netfilter.Rule {
	list := []netfilter.Rule{jump("kubernetes service portals", o.Names.Chain(netfilter.ChainServices))}
	for _, set := range []string{netfilter.SetClusterIP, netfilter.SetExternalIP, netfilter.SetExternalIPLocal} {
		list = append(list, netfilter.Rule{Comment: "kubernetes virtual servers", MatchSet: o.inSet(set), Target: netfilter.TargetReturn})
	}
	return append(list, netfilter.Rule{
		Comment:  "no virtual server has this port",
		CTState:  netfilter.CTNew,
		MatchSet: netfilter.SetMatch{Name: netfilter.SetName(o.Family, netfilter.SetIPVSIPs), Fields: "dst"},
		Target:   netfilter.TargetReject,
	})
}

// hairpinRules masquerade what IPVS sends back to where it came from. What a process of this
// machine sends to itself beside IPVS is left alone.
func hairpinRules(o Options) []netfilter.Rule {
	if !o.IPVS {
		return nil
	}
	return []netfilter.Rule{{
		Comment:  "kubernetes endpoints that reach themselves through their service",
		MatchSet: netfilter.SetMatch{Name: netfilter.SetName(o.Family, netfilter.SetLoopBack), Fields: "dst,dst,src"},
		IPVS:     !o.withoutIPVSMatch,
		Target:   netfilter.TargetMasquerade, Random: o.RandomFully,
	}}
}
