package ipvs

import (
	"net/netip"
	"slices"
)

// leaveFromElsewhere cares for the machine's own connections to addresses that are about to go
// while chains go on serving them. From now on chains translate them, so no virtual server counts
// them and nothing would wait for their end. host are the machine's own addresses, sorted: one
// that a link of its own has too does not go.
func (b *Backend) leaveFromElsewhere(host []netip.Addr) {
	sources := map[bool]netip.Addr{} // of IPv6 or not; the zero Addr = there is none
	for a, near := range b.planner.translated() {
		if _, own := slices.BinarySearchFunc(host, a, netip.Addr.Compare); own {
			continue
		}
		done, err := b.kernel.leavesFromElsewhere(a)
		if done {
			continue
		}
		source, looked := sources[a.Is6()]
		if err == nil && !looked {
			source, err = b.kernel.sourceTo(a, near, b.planner.Has().Addresses)
			sources[a.Is6()] = source
		}
		if err == nil && source.IsValid() {
			err = b.kernel.leaveFrom(a, source)
		}
		if err != nil {
			b.warnOnce("connections of this machine to a Service may end when its virtual server does", "address", a, "err", err)
		}
	}
}

// translated are the addresses on Link that are to go although Services have them: chains serve
// them instead. Each with an endpoint that it had; the zero Addr where it had none.
func (p *Planner) translated() map[netip.Addr]netip.Addr {
	p.init()
	found := map[netip.Addr]netip.Addr{}
	for key := range surplus(p.keys().servers, p.want.servers, p.have.Servers) {
		a := key.Addr.Addr()
		_, there := p.have.Addresses[a]
		_, stays := p.want.addresses[a]
		if _, served := p.want.winners[key]; served && there && !stays && !p.isForeign(key) {
			found[a] = netip.Addr{}
		}
	}
	if len(found) == 0 {
		return found
	}
	for d := range surplus(p.keys().destinations, p.want.destinations, p.have.Destinations) {
		a, endpoint := d.Server.Addr.Addr(), d.Addr.Addr()
		if first, going := found[a]; going && (!first.IsValid() || endpoint.Less(first)) {
			found[a] = endpoint
		}
	}
	return found
}
