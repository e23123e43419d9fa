package iptables

// The skeleton of IPVS mode. A packet to a virtual server passes nat and filter with the
// server's address as its destination, which is local here; IPVS takes it behind filter.

// inSet matches packets whose destination, address and port, is in a set.
func (o Options) inSet(name string) SetMatch {
	return SetMatch{Name: SetName(o.Family, name), Fields: "dst,dst"}
}

// serviceChain is the chain of nat that holds the Services' entries.
func (o Options) serviceChain() string {
	if o.IPVS {
		return o.Names.chain(chainIPVSChains)
	}
	return o.Names.chain(chainServices)
}

// ipvsServicesRules lead to what chains decide and mark what is to be masqueraded behind
// IPVS. The node's own packets to a cluster IP have that very address as their source,
// whatever the detector makes of it, and no answer would come back to it.
func ipvsServicesRules(o Options) []Rule {
	masquerade := jumpTo(Rule{Comment: "kubernetes cluster IPs, masquerade", MatchSet: o.inSet(SetClusterIP)}, o.Names.chain(chainMarkMasq))
	list := []Rule{jumpTo(Rule{
		Comment: "kubernetes services that a virtual server cannot serve alone", MatchSet: o.inSet(SetChains),
	}, o.Names.chain(chainIPVSChains))}
	if o.Pods.tells() && !o.Pods.everybody() {
		list = append(list, o.Pods.narrow(masquerade, false))
	}
	own := masquerade
	own.Comment, own.SrcLocal = "kubernetes cluster IPs, masquerade LOCAL traffic", true
	return append(list, own,
		jumpTo(Rule{Comment: "kubernetes external addresses, masquerade", MatchSet: o.inSet(SetExternalIP)}, o.Names.chain(chainMarkMasq)))
}

// ipvsFilterRules refuse what goes to the address of a virtual server, but to no server:
// what else listens on this machine must not answer there. The address of a Service that has
// verdicts only may be local because of another port, so their entries are met first.
func ipvsFilterRules(o Options) []Rule {
	list := []Rule{jump("kubernetes service portals", o.Names.chain(chainServices))}
	for _, set := range []string{SetClusterIP, SetExternalIP, SetExternalIPLocal} {
		list = append(list, Rule{Comment: "kubernetes virtual servers", MatchSet: o.inSet(set), Target: TargetReturn})
	}
	return append(list, Rule{
		Comment:  "no virtual server has this port",
		CTState:  CTNew,
		MatchSet: SetMatch{Name: SetName(o.Family, SetIPVSIPs), Fields: "dst"},
		Target:   TargetReject,
	})
}

// hairpinRules masquerade what IPVS sends back to where it came from. What a process of this
// machine sends to itself beside IPVS is left alone.
func hairpinRules(o Options) []Rule {
	if !o.IPVS {
		return nil
	}
	r := Rule{
		Comment:  "kubernetes endpoints that reach themselves through their service",
		MatchSet: SetMatch{Name: SetName(o.Family, SetLoopBack), Fields: "dst,dst,src"},
		IPVS:     !o.WithoutIPVS,
		Target:   TargetMasquerade, Random: o.RandomFully,
	}
	if o.WithoutIPVS {
		r.Comment += commentNoIPVS
	}
	return []Rule{r}
}
