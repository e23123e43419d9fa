package iptables

// mayBeStale reports whether a chain that nobody wants is removed where it is found: those of
// Services, of the other mode, and of kube-proxy's IPVS mode. kube-proxy's canary is left to
// cleaning up.
func (n Naming) mayBeStale(p place) bool {
	return (p.table == Filter || p.table == NAT) && p.chain != chainProxyCanary && n.IsOurs(p.table, p.chain)
}

// misplaced reports whether a line is a jump from a built-in chain that goes together with a
// change of mode, as kube-proxy's IPVS mode makes them: to a chain that is removed, to one
// that only chains of ours lead to, or to the firewall for more than new connections. A rule
// that cannot be said is somebody else's and stays.
func (ix *index) misplaced(p place, line Line) bool {
	if line.Foreign || !isBuiltIn(p.chain) || line.Rule.Target != TargetJump {
		return false
	}
	to := place{p.table, line.Rule.Jump}
	if _, stale := ix.stale[to]; stale {
		return true
	}
	switch firewall := (place{Filter, ix.names.chain(chainProxyFirewall)}); to {
	case place{NAT, ix.names.chain(chainIPVSChains)}, place{Filter, ix.names.chain(chainIPVSFilter)}:
		return true
	case firewall:
		return line.Rule.Same(jump("", firewall.chain))
	}
	return false
}
