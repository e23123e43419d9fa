package rules

import (
	"net/netip"
	"slices"

	"gridproxy/topology"
)

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// newNodePortScope decides on which addresses NodePorts answer, as kube-proxy 1.37 does. Primary
// means one more prefix, which contains only the node's own address. A family in which the Node
// object has no address gets none. After that a family without any prefix answers on every
// address, unless it is not known what primary means, because the Node object has no address:
// kube-proxy 1.36 keeps those of its start, and 1.37 exits. Loopback is only for IPv4, and only if
// it is enabled.
func newNodePortScope(self topology.NodeFacts, c Config) NodePortScope {
	prefixes4, prefixes6 := byFamily(c.NodePortAddresses.Prefixes)
	anywhere := true // where nothing is listed
	if c.NodePortAddresses.Primary {
		prefixes4 = append(prefixes4, primary(self.IPs, false)...)
		prefixes6 = append(prefixes6, primary(self.IPs, true)...)
		anywhere = len(self.IPs) > 0
	}
	localhost := c.LocalhostNodePorts && (anywhere && len(prefixes4) == 0 || slices.ContainsFunc(prefixes4, loopback4.Overlaps))
	scope := NodePortScope{Localhost: localhost}
	if anywhere || len(prefixes4) > 0 {
		scope.IPv4 = newListenAddrs(self.HostAddrs, prefixes4, false, localhost)
	}
	if anywhere || len(prefixes6) > 0 {
		scope.IPv6 = newListenAddrs(self.HostAddrs, prefixes6, true, false)
	}
	if !localhost {
		scope.HealthLoopback = listedLoopback(self.HostAddrs, prefixes4)
	}
	scope.HealthLoopback = append(scope.HealthLoopback, listedLoopback(self.HostAddrs, prefixes6)...)
	return scope
}

// listedLoopback returns the loopback addresses inside prefixes of one family. It returns nil
// if a prefix contains every address, or without prefixes.
func listedLoopback(host []netip.Addr, prefixes []netip.Prefix) []netip.Addr {
	var addrs []netip.Addr
	if listed := newListenAddrs(host, prefixes, len(prefixes) > 0 && prefixes[0].Addr().Is6(), true); !listed.All {
		addrs = slices.DeleteFunc(listed.Addrs, func(a netip.Addr) bool { return !a.IsLoopback() })
	}
	return addrs
}

// primary returns the prefix of the node's own address of a family. It returns nil if the node
// has none, or if that address is a loopback address.
func primary(ips []netip.Addr, ipv6 bool) []netip.Prefix {
	a := firstOf(ips, ipv6)
	if !a.IsValid() || a.IsLoopback() {
		return nil
	}
	return []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}
}

func newListenAddrs(host []netip.Addr, prefixes []netip.Prefix, ipv6, localhost bool) ListenAddrs {
	all := len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Bits() == 0 })
	var addrs []netip.Addr
	for _, a := range host {
		inside := all || slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
		if a.Is6() == ipv6 && inside && (localhost || !a.IsLoopback()) {
			addrs = append(addrs, a)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return ListenAddrs{All: all, Addrs: slices.Compact(addrs)}
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
