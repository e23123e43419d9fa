package render

import "gridproxy/rules/netfilter"

// The jumps from the built-in chains, top first: kube-proxy inserts them in the reverse order.

func filterJumps(o Options) []netfilter.Chain {
	name := o.Names.Chain
	kubelet := netfilter.Rule{Target: netfilter.TargetJump, Jump: netfilter.ChainFirewall}
	balancer := newJump("kubernetes load balancer firewall", name(netfilter.ChainProxyFirewall))
	portals := newJump("kubernetes service portals", name(netfilter.ChainServices))
	external := newJump("kubernetes externally-visible service portals", name(netfilter.ChainExternalServices))

	jumps := []netfilter.Chain{
		{Name: "INPUT", Rules: []netfilter.Rule{balancer, jump("kubernetes health check service ports", name(netfilter.ChainNodePorts)), external}},
		{Name: "FORWARD", Rules: []netfilter.Rule{balancer, jump("kubernetes forwarding rules", name(netfilter.ChainForward)), portals, external}},
		{Name: "OUTPUT", Rules: []netfilter.Rule{balancer, portals}},
	}
	if o.LocalhostNodePorts {
		for _, i := range []int{0, 2} {
			jumps[i].Rules = append([]netfilter.Rule{kubelet}, jumps[i].Rules...)
		}
	}
	if o.LocalDNS.IsValid() {
		direct := jump("gridproxy: who may ask the DNS server of this node", name(netfilter.ChainLocalDNS))
		direct.Dst = hostPrefix(o.LocalDNS)
		jumps[0].Rules = append([]netfilter.Rule{direct}, jumps[0].Rules...)
	}
	return jumps
}

func natJumps(o Options) []netfilter.Chain {
	n := o.Names
	portals := []netfilter.Rule{jump("kubernetes service portals", n.Chain(netfilter.ChainServices))}
	if o.LocalDNS.IsValid() {
		portals = append([]netfilter.Rule{jump("gridproxy: DNS of this node", n.Chain(netfilter.ChainLocalDNS))}, portals...)
	}
	return []netfilter.Chain{
		{Name: "PREROUTING", Rules: portals},
		{Name: "OUTPUT", Rules: portals},
		{Name: "POSTROUTING", Rules: []netfilter.Rule{jump("kubernetes postrouting rules", n.Chain(netfilter.ChainPostrouting))}},
	}
}

func jump(comment, chain string) netfilter.Rule {
	return netfilter.Rule{Comment: comment, Target: netfilter.TargetJump, Jump: chain}
}

// newJump returns a jump for the first packet of a connection only.
func newJump(comment, chain string) netfilter.Rule {
	r := jump(comment, chain)
	r.CTState = netfilter.CTNew
	return r
}
