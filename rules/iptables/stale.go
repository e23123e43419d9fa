package iptables

import "gridproxy/rules/netfilter"

// mayBeStale reports whether a chain that nobody wants is removed where it is found: those of
// Services, of the other mode, and of kube-proxy's IPVS mode. kube-proxy's canary is left to
// cleaning up.
func mayBeStale(n netfilter.Naming, p place) bool {
	return (p.table == netfilter.Filter || p.table == netfilter.NAT) && p.chain != netfilter.ChainProxyCanary && n.IsOurs(p.table, p.chain)
}

// misplaced reports whether a line is a jump from a built-in chain that goes together with a
// change of mode, as kube-proxy's IPVS mode makes them: to a chain that is removed, to one
// that only chains of ours lead to, or to the firewall for more than new connections. A rule
// that cannot be said is somebody else's and stays.
func (ix *index) misplaced(p place, line netfilter.Line) bool {
	if line.Foreign || !netfilter.IsBuiltIn(p.chain) || line.Rule.Target != netfilter.TargetJump {
		return false
	}
	to := place{p.table, line.Rule.Jump}
	if _, stale := ix.stale[to]; stale {
		return true
	}
	switch firewall := (place{netfilter.Filter, ix.names.Chain(netfilter.ChainProxyFirewall)}); to {
	case place{netfilter.NAT, ix.names.Chain(netfilter.ChainIPVSChains)}, place{netfilter.Filter, ix.names.Chain(netfilter.ChainIPVSFilter)}:
		return true
	case firewall:
		return line.Rule.Same(jump("", firewall.chain))
	}
	return false
}
