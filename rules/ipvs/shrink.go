package ipvs

import (
	"net/netip"
	"slices"
)

// shrink plans what is deleted, in this order: real servers, servers, addresses, set entries.
// What a draining real server needs stays, and only that is in touched afterwards.
func (p *planner) shrink(l limits) []operation {
	s := shrinking{planner: p, rest: newTouched(), addresses: map[netip.Addr]struct{}{}}
	s.deleteDestinations(l)
	s.deleteServers()
	s.contested = slices.DeleteFunc(p.conflicts(), func(key ServerKey) bool { return has(s.addresses, key.Addr.Addr()) })
	s.deleteAddresses()
	s.deleteEntries()
	p.touched = s.rest
	return s.ops
}

// shrinking is one shrink. rest is what stays although it is not desired: the next plan looks at it
// again.
type shrinking struct {
	*planner
	rest      touched
	addresses map[netip.Addr]struct{} // of the servers in rest
	contested []ServerKey             // desired, but of other programs: what they alone need goes too
	ops       []operation
}

func (s *shrinking) deleteDestinations(l limits) {
	for _, d := range s.surplusDestinations() {
		if s.drained(d, l) {
			s.ops = append(s.ops, operation{Kind: deleteDestination, Destination: d})
			continue
		}
		note(s.rest.destinations, d)
		note(s.rest.servers, d.Server)
	}
}

// deleteServers deletes servers without draining real servers. While an address stays on our link
// only because something drains there, the other servers on it stay too, and refuse: without them
// a socket of this machine would answer on their ports.
func (s *shrinking) deleteServers() {
	for key := range s.rest.servers {
		if has(s.desired.servers, key) {
			delete(s.rest.servers, key)
			continue
		}
		s.addresses[key.Addr.Addr()] = struct{}{}
	}
	for _, key := range slices.SortedFunc(surplus(s.touched.servers, s.desired.servers, s.observed.Servers), compareServers) {
		switch {
		case has(s.rest.servers, key) || s.isForeign(key):
		case s.lingers(key.Addr.Addr()):
			note(s.rest.servers, key)
		default:
			s.ops = append(s.ops, operation{Kind: deleteServer, Destination: DestinationKey{Server: key}})
		}
	}
}

// lingers reports whether an address is on our link only because something drains there.
func (s *shrinking) lingers(a netip.Addr) bool {
	return has(s.addresses, a) && has(s.observed.Addresses, a) && !has(s.desired.addresses, a)
}

func (s *shrinking) deleteAddresses() {
	for _, a := range slices.SortedFunc(surplus(s.touched.addresses, s.desired.addresses, s.observed.Addresses), netip.Addr.Compare) {
		if has(s.addresses, a) {
			note(s.rest.addresses, a)
			continue
		}
		s.ops = append(s.ops, operation{Kind: deleteAddress, Addr: a})
	}
	for _, key := range s.contested {
		if a := key.Addr.Addr(); has(s.observed.Addresses, a) && s.onlyForeign(a) {
			s.deleteOnce(operation{Kind: deleteAddress, Addr: a})
		}
	}
}

func (s *shrinking) deleteEntries() {
	for _, e := range slices.SortedFunc(surplus(s.touched.entries, s.desired.entries, s.observed.Entries), compareEntries) {
		use, kept := keptSets[e.Set]
		switch {
		case !kept: // of kube-proxy: discard destroys the whole set
		case use == serverUse && has(s.rest.servers, listedServer(e)), use == addressUse && has(s.addresses, e.Net.Addr()):
			note(s.rest.entries, e)
		default:
			s.ops = append(s.ops, operation{Kind: deleteEntry, Entry: e})
		}
	}
	for _, key := range s.contested {
		for _, e := range s.claiming(key) {
			if has(s.desired.entries, e) {
				s.deleteOnce(operation{Kind: deleteEntry, Entry: e})
			}
		}
	}
}

// deleteOnce adds op to ops, unless they have it.
func (s *shrinking) deleteOnce(op operation) {
	if !slices.Contains(s.ops, op) {
		s.ops = append(s.ops, op)
	}
}
