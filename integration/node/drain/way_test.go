package drain

import (
	"net/netip"

	"gridproxy/integration/lab"
	"gridproxy/integration/stream"
)

// routes are all the ways to a Service that must answer whatever happens: from a Pod, from the node
// and from outside, to its cluster IP, its ExternalIP and its NodePort.
func (w *world) routes(last byte) []stream.Way {
	var all []stream.Way
	for _, f := range lab.Families() {
		for _, to := range []netip.AddrPort{vip(f, last), external(f, last), w.nodePort(f, last)} {
			all = append(all, way(w.Client(here).Namespace, to), way(w.Outside, to))
		}
		all = append(all, way(w.node.Namespace, vip(f, last)))
	}
	return all
}

// ways are those of the routes that connections stay open on: one of each kind.
func (w *world) ways(last byte) []stream.Way {
	return []stream.Way{
		way(w.Client(here).Namespace, vip(lab.IPv4, last)),
		way(w.Client(here).Namespace, vip(lab.IPv6, last)),
		way(w.node.Namespace, vip(lab.IPv4, last)),
		way(w.Outside, w.nodePort(lab.IPv4, last)),
		way(w.Outside, w.nodePort(lab.IPv6, last)),
		way(w.Outside, external(lab.IPv4, last)),
	}
}

func way(from *lab.Namespace, to netip.AddrPort) stream.Way { return stream.Way{From: from, To: to} }
