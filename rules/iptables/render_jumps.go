package iptables

// The jumps from the built-in chains, top first. kube-proxy puts each in front of those
// before it, so this order is the reverse of the one it inserts them in.

func filterJumps(o Options) []Chain {
	name := o.Names.chain
	kubelet := Rule{Target: TargetJump, Jump: chainFirewall}
	balancer := newJump("kubernetes load balancer firewall", name(chainProxyFirewall))
	portals := newJump("kubernetes service portals", name(chainServices))
	external := newJump("kubernetes externally-visible service portals", name(chainExternalServices))

	jumps := []Chain{
		{Name: "INPUT", Rules: []Rule{balancer, jump("kubernetes health check service ports", name(chainNodePorts)), external}},
		{Name: "FORWARD", Rules: []Rule{balancer, jump("kubernetes forwarding rules", name(chainForward)), portals, external}},
		{Name: "OUTPUT", Rules: []Rule{balancer, portals}},
	}
	if o.LocalhostNodePorts {
		for _, i := range []int{0, 2} {
			jumps[i].Rules = append([]Rule{kubelet}, jumps[i].Rules...)
		}
	}
	return jumps
}

func natJumps(n Naming) []Chain {
	portals := []Rule{jump("kubernetes service portals", n.chain(chainServices))}
	return []Chain{
		{Name: "PREROUTING", Rules: portals},
		{Name: "OUTPUT", Rules: portals},
		{Name: "POSTROUTING", Rules: []Rule{jump("kubernetes postrouting rules", n.chain(chainPostrouting))}},
	}
}

func jump(comment, chain string) Rule {
	return Rule{Comment: comment, Target: TargetJump, Jump: chain}
}

// newJump is a jump for the first packet of a connection only.
func newJump(comment, chain string) Rule {
	r := jump(comment, chain)
	r.CTState = CTNew
	return r
}
