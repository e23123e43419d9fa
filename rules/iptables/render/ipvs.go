package render

import "gridproxy/rules/netfilter"

// The fixed chains of IPVS mode. A packet to a virtual server passes nat and filter with the
// server's address as its destination, which is local here. After filter IPVS takes it.

// inSet matches packets whose destination address and port are in a set.
func (o Options) inSet(name string) netfilter.SetMatch {
	return netfilter.SetMatch{Name: netfilter.SetName(o.Family, name), Fields: "dst,dst"}
}

// ipvsServicesRules lead to the chains that decide, and mark what is masqueraded after IPVS. The
// node's own packets to a cluster IP have that same address as their source, whatever the detector
// says, and would get no answer.
func ipvsServicesRules(o Options) []netfilter.Rule {
	mark := o.Names.Chain(netfilter.ChainMarkMasq)
	masquerade := jumpTo(netfilter.Rule{Comment: "kubernetes cluster IPs, masquerade", MatchSet: o.inSet(netfilter.SetClusterIP)}, mark)
	list := []netfilter.Rule{jumpTo(netfilter.Rule{
		Comment: "kubernetes services that a virtual server cannot serve alone", MatchSet: o.inSet(netfilter.SetChains),
	}, o.Names.Chain(netfilter.ChainIPVSChains))}
	if o.Pods.tells() && !o.Pods.everybody() {
		list = append(list, o.Pods.narrow(masquerade, false))
	}
	own := masquerade
	own.Comment, own.SrcLocal = "kubernetes cluster IPs, masquerade LOCAL traffic", true
	return append(list, own,
		jumpTo(netfilter.Rule{Comment: "kubernetes external addresses, masquerade", MatchSet: o.inSet(netfilter.SetExternalIP)}, mark))
}

// ipvsFilterRules reject packets to a virtual server's address without a matching server, so that
// other listeners of this machine do not answer there. A Service with only verdicts may share the
// address with another port, so its entries come first.
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

// hairpinRules masquerade what IPVS sends back to its source. They ignore what a process of this
// machine sends to itself without IPVS.
func hairpinRules(o Options) []netfilter.Rule {
	if !o.IPVS {
		return nil
	}
	r := netfilter.Rule{
		Comment:  "kubernetes endpoints that reach themselves through their service",
		MatchSet: netfilter.SetMatch{Name: netfilter.SetName(o.Family, netfilter.SetLoopBack), Fields: "dst,dst,src"},
		IPVS:     !o.WithoutIPVS,
		Target:   netfilter.TargetMasquerade, Random: o.RandomFully,
	}
	if o.WithoutIPVS {
		r.Comment += CommentNoIPVS
	}
	return []netfilter.Rule{r}
}
