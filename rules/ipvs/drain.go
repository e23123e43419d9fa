package ipvs

import (
	"maps"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// A real server that is not desired any more drains. Weight 0 keeps new connections away (quiesce,
// quiesceServers), and open connections go on. It is deleted when it has none left, or after the
// drain timeout (drained). Whether it may drain at all is decided in atOnce.

// limits bound what a plan takes away.
type limits struct {
	now   time.Time
	drain time.Duration // how long a real server drains at most
	// noDrain says that this kernel may give new connections to a real server of weight 0. One that
	// is not in the unit any more is deleted at once.
	noDrain  bool
	families rules.FamilySet // those that the phase works on
}

// quiesce keeps new connections from surplus real servers of desired virtual servers: it plans
// to set their weight to 0, or to delete those that atOnce reports true for. It notes since
// when each drains. If that is unknown, as after a restart, it is since now.
func (p *planner) quiesce(l limits) []operation {
	maps.DeleteFunc(p.drains, func(d DestinationKey, _ time.Time) bool { return has(p.desired.destinations, d) })
	var ops []operation
	for _, d := range p.surplusDestinations() {
		if !has(p.desired.servers, d.Server) {
			continue
		}
		if p.atOnce(d, l) {
			ops = append(ops, operation{Kind: deleteDestination, Destination: d})
			continue
		}
		ops = p.startDrain(ops, d, l)
	}
	return ops
}

// quiesceServers plans the same for virtual servers of l.families that are not desired any
// more. It leaves to shrink what does not drain.
func (p *planner) quiesceServers(l limits) []operation {
	var ops []operation
	for _, d := range p.surplusDestinations() {
		if l.families[d.Server.family()] && !has(p.desired.servers, d.Server) && !p.atOnce(d, l) {
			ops = p.startDrain(ops, d, l)
		}
	}
	return ops
}

// startDrain notes that a real server drains since now, unless it drains already. Unless its
// weight is 0, it appends the operation that sets it to 0.
func (p *planner) startDrain(ops []operation, d DestinationKey, l limits) []operation {
	if !has(p.drains, d) {
		p.drains[d] = l.now
	}
	if p.observed.Destinations[d].Weight != 0 {
		ops = append(ops, operation{Kind: updateDestination, Destination: d, Weight: 0})
	}
	return ops
}

// atOnce reports whether a real server is deleted without a drain. Connections of TCP and SCTP may
// end in good order although their endpoint has left the unit: the kernel sees how they begin and
// end, and gives no new one of either to a real server of weight 0. A flow of UDP has no end to
// wait for, so it goes on only where its endpoint still serves. In iptables mode, too, only UDP
// flows are deleted. kube-proxy deletes real servers of SCTP at once, as those of UDP.
func (p *planner) atOnce(d DestinationKey, l limits) bool {
	if d.Server.Proto == netfilter.UDP {
		return !p.desired.serves(d)
	}
	return l.noDrain && p.desired.leftUnit(d)
}

// drained reports whether a real server may be deleted. One whose connections were not counted
// drains on.
func (p *planner) drained(d DestinationKey, l limits) bool {
	open, counted := p.connections[d]
	return p.atOnce(d, l) || counted && open == 0 || l.now.Sub(p.drains[d]) >= l.drain
}

// surplusDestinations returns the real servers of ours that are not desired any more, sorted.
func (p *planner) surplusDestinations() []DestinationKey {
	all := slices.SortedFunc(surplus(p.touched.destinations, p.desired.destinations, p.observed.Destinations), compareDestinations)
	return slices.DeleteFunc(all, func(d DestinationKey) bool { return p.isForeign(d.Server) })
}
