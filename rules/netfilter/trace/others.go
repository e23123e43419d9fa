package trace

import (
	"net/netip"

	"gridproxy/rules/netfilter"
)

// served hands flows to the virtual servers: one flow for each real server, all equally likely. A
// virtual server without real servers refuses. others are the flows that met no virtual server or
// have ended.
func (w *walk) served(flows []flow) (served, others []flow) {
	for _, f := range flows {
		endpoints, found := w.server(f)
		switch {
		case !found:
			others = append(others, f)
		case len(endpoints) == 0:
			f.verdict = netfilter.TargetReject
			others = append(others, f)
		default:
			f.ipvs = true
			f.weight = f.weight.among(len(endpoints))
			for _, e := range endpoints {
				f.dst = e
				served = append(served, f)
			}
		}
	}
	return served, others
}

func (w *walk) server(f flow) (endpoints []netip.AddrPort, found bool) {
	if w.others.Server == nil || f.verdict != netfilter.TargetNone {
		return nil, false
	}
	return w.others.Server(f.dst, w.packet.Proto)
}

func (w *walk) inSet(m netfilter.SetMatch, f flow) bool {
	if w.others.InSet == nil {
		w.problem("set %s is not known and taken as empty", m.Name)
		return false
	}
	return w.others.InSet(m, netip.AddrPortFrom(w.packet.Src, 0), f.dst, w.packet.Proto)
}
