package drain

import (
	"net/netip"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
)

// routes are all the ways to a Service that must answer whatever happens: from a Pod, from the node
// and from outside, to its cluster IP, its ExternalIP and its NodePort.
func (w *world) routes(last byte) []traffic.Way {
	var all []traffic.Way
	for _, f := range netns.Families() {
		for _, to := range []netip.AddrPort{netns.VIP(f, last), netns.External(f, last), w.nodePort(f, last)} {
			all = append(all, way(w.Client(here).Namespace, to), way(w.Outside, to))
		}
		all = append(all, way(w.node.Namespace, netns.VIP(f, last)))
	}
	return all
}

// ways are those of the routes that connections stay open on: one of each kind.
func (w *world) ways(last byte) []traffic.Way {
	return []traffic.Way{
		way(w.Client(here).Namespace, netns.VIP(netns.IPv4, last)),
		way(w.Client(here).Namespace, netns.VIP(netns.IPv6, last)),
		way(w.node.Namespace, netns.VIP(netns.IPv4, last)),
		way(w.Outside, w.nodePort(netns.IPv4, last)),
		way(w.Outside, w.nodePort(netns.IPv6, last)),
		way(w.Outside, netns.External(netns.IPv4, last)),
	}
}

func way(from *netns.Namespace, to netip.AddrPort) traffic.Way {
	return traffic.Way{From: from, To: to}
}
