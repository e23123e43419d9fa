package rules

import (
	"net/netip"
	"slices"

	"gridproxy/topology"
)

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// nodePorts decides on which addresses NodePorts answer. As kube-proxy: a family for
// which no prefix is given answers on every address, loopback only for IPv4 and only
// where it is asked for.
func nodePorts(self topology.NodeFacts, c Config) NodePorts {
	prefixes4, prefixes6 := byFamily(c.NodePortAddresses.Prefixes)
	localhost := c.LocalhostNodePorts && !c.NodePortAddresses.Primary &&
		(len(prefixes4) == 0 || slices.ContainsFunc(prefixes4, loopback4.Overlaps))
	if c.NodePortAddresses.Primary {
		return NodePorts{
			IPv4: NodePortAddrs{Addrs: addrsOf(firstOf(self.IPs, false))},
			IPv6: NodePortAddrs{Addrs: addrsOf(firstOf(self.IPs, true))},
		}
	}
	return NodePorts{
		IPv4:      nodePortAddrs(self.HostAddrs, prefixes4, false, localhost),
		IPv6:      nodePortAddrs(self.HostAddrs, prefixes6, true, false),
		Localhost: localhost,
	}
}

func nodePortAddrs(host []netip.Addr, prefixes []netip.Prefix, ipv6, localhost bool) NodePortAddrs {
	if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Bits() == 0 }) {
		return NodePortAddrs{All: true}
	}
	var addrs []netip.Addr
	for _, a := range host {
		inside := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
		if a.Is6() == ipv6 && inside && (localhost || !a.IsLoopback()) {
			addrs = append(addrs, a)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return NodePortAddrs{Addrs: slices.Compact(addrs)}
}

func addrsOf(a netip.Addr) []netip.Addr {
	if !a.IsValid() {
		return nil
	}
	return []netip.Addr{a}
}

func byFamily(all []netip.Prefix) (v4, v6 []netip.Prefix) {
	for _, p := range all {
		if p.Addr().Is6() {
			v6 = append(v6, p)
		} else {
			v4 = append(v4, p)
		}
	}
	return v4, v6
}
