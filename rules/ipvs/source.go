package ipvs

import (
	"net/netip"
	"slices"
)

// changeSources gives this machine's own connections another source address, where their
// Service moves from a virtual server to chains and the address leaves Link. Chains translate
// these connections from now on. No virtual server counts them, so no drain would wait for
// them, and with the address as source they would end with it. host are the addresses of this
// machine, sorted: one that another link has too stays. A failure is only logged.
func (b *Backend) changeSources(host []netip.Addr) {
	sources := map[bool]netip.Addr{} // of IPv6 or not; the zero Addr = none was found
	for a, near := range b.planner.movedToChains() {
		if _, own := slices.BinarySearchFunc(host, a, netip.Addr.Compare); own {
			continue
		}
		done, err := b.kernel.hasSourceRoute(a)
		if done {
			continue
		}
		source, looked := sources[a.Is6()]
		if err == nil && !looked {
			source, err = b.kernel.sourceTo(a, near, b.planner.observed.Addresses)
			sources[a.Is6()] = source
		}
		if err == nil && source.IsValid() {
			err = b.kernel.addSourceRoute(a, source)
		}
		if err != nil {
			b.warnOnce("connections of this machine to a Service may end when its virtual server is deleted", "address", a, "err", err)
		}
	}
}

// movedToChains returns the addresses that leave Link although Services have them: chains serve
// them instead. Each comes with a real server that it had; the zero Addr = it had none.
func (p *planner) movedToChains() map[netip.Addr]netip.Addr {
	found := map[netip.Addr]netip.Addr{}
	for key := range surplus(p.touched.servers, p.desired.servers, p.observed.Servers) {
		a := key.Addr.Addr()
		leaves := has(p.observed.Addresses, a) && !has(p.desired.addresses, a)
		if leaves && has(p.desired.services, key) && !p.isForeign(key) {
			found[a] = netip.Addr{}
		}
	}
	if len(found) == 0 {
		return found
	}
	for d := range surplus(p.touched.destinations, p.desired.destinations, p.observed.Destinations) {
		a, endpoint := d.Server.Addr.Addr(), d.Addr.Addr()
		if first, going := found[a]; going && (!first.IsValid() || endpoint.Less(first)) {
			found[a] = endpoint
		}
	}
	return found
}
