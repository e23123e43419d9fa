package ipvs

import (
	"net/netip"
	"slices"
	"time"

	"gridproxy/rules/netfilter"
)

// Quiesce takes new connections from the destinations that are not wanted any more, of virtual
// servers that are: weight 0, or deleted where they are not given time to drain. It comes
// before the chains and needs none: an endpoint that left the unit gets nothing new while the
// chains cannot be written. A drain whose beginning nobody remembers, as after a restart,
// begins now.
func (p *Planner) Quiesce(now time.Time, l Limits) []Op {
	p.init()
	for d := range p.drains {
		if _, wanted := p.want.destinations[d]; wanted {
			delete(p.drains, d)
		}
	}
	return p.quiesce(now, l, true)
}

// QuiesceServers does the same for the virtual servers that go. It comes after the chains,
// which may be what takes their place, and before connections are counted.
func (p *Planner) QuiesceServers(now time.Time, l Limits) []Op { return p.quiesce(now, l, false) }

func (p *Planner) quiesce(now time.Time, l Limits, stays bool) []Op {
	var ops []Op
	for _, d := range sorted(surplus(p.keys().destinations, p.want.destinations, p.have.Destinations), compareDestinations) {
		if _, wanted := p.want.servers[d.Server]; wanted != stays || p.isForeign(d.Server) || !stays && l.held[d.Server.family()] {
			continue
		}
		if p.atOnce(d, l) {
			if stays {
				ops = append(ops, Op{Kind: DeleteDestination, Destination: d})
			}
			continue
		}
		if _, drains := p.drains[d]; !drains {
			p.drains[d] = now
		}
		if p.have.Destinations[d].Weight != 0 {
			ops = append(ops, Op{Kind: UpdateDestination, Destination: d, Weight: 0})
		}
	}
	return ops
}

// atOnce reports whether a destination is not given time to drain. A TCP connection may end
// in good order even where its endpoint has left. A UDP flow has no end to wait for, so it goes on
// only where the endpoint still serves: as in iptables mode, where such flows are left alone.
func (p *Planner) atOnce(d DestinationKey, l Limits) bool {
	if d.Server.Proto != netfilter.TCP {
		return !p.want.serves(d)
	}
	return l.NoDrain && p.want.left(d)
}

// Shrink is what is deleted, in order: destinations, servers, addresses, set entries. What
// a draining destination needs stays. connections are those of Counting; a destination that
// is not in it was not seen and drains on.
func (p *Planner) Shrink(now time.Time, l Limits, connections map[DestinationKey]int) []Op {
	p.init()
	s := shrinking{Planner: p, keys: p.keys(), rest: newTouched(), addresses: map[netip.Addr]struct{}{}}
	s.destinations(func(d DestinationKey) bool {
		open, counted := connections[d]
		return p.atOnce(d, l) || counted && open == 0 || now.Sub(p.drains[d]) >= l.Drain
	})
	s.servers()
	s.contested = slices.DeleteFunc(p.Conflicts(), func(key ServerKey) bool {
		_, drains := s.addresses[key.Addr.Addr()]
		return drains
	})
	s.freeAddresses()
	s.entries()
	p.whole, p.touched = false, s.rest
	return s.ops
}

// shrinking is one Shrink. rest is what stays although it is not wanted: the next plan looks
// at it again.
type shrinking struct {
	*Planner
	keys      touched
	rest      *touched
	addresses map[netip.Addr]struct{} // of the servers in rest
	contested []ServerKey             // wanted, but others': what stayed wanted for them alone goes, too
	ops       []Op
}

func (s *shrinking) destinations(done func(DestinationKey) bool) {
	for _, d := range sorted(surplus(s.keys.destinations, s.want.destinations, s.have.Destinations), compareDestinations) {
		if s.isForeign(d.Server) {
			continue
		}
		if done(d) {
			s.ops = append(s.ops, Op{Kind: DeleteDestination, Destination: d})
			continue
		}
		s.rest.destination(d)
		s.rest.server(d.Server)
	}
}

// servers deletes those without destinations that drain. While an address stays on our link only
// because something drains there, the others on it stay, too, and refuse: without them a socket of
// the machine's own would answer on its port.
func (s *shrinking) servers() {
	for key := range s.rest.servers {
		if _, wanted := s.want.servers[key]; wanted {
			delete(s.rest.servers, key)
			continue
		}
		s.addresses[key.Addr.Addr()] = struct{}{}
	}
	for _, key := range sorted(surplus(s.keys.servers, s.want.servers, s.have.Servers), compareServers) {
		switch _, drains := s.rest.servers[key]; {
		case drains || s.isForeign(key):
		case s.lingers(key.Addr.Addr()):
			s.rest.server(key)
		default:
			s.ops = append(s.ops, Op{Kind: DeleteServer, Destination: DestinationKey{Server: key}})
		}
	}
}

// lingers reports whether an address is on our link only because something drains there.
func (s *shrinking) lingers(a netip.Addr) bool {
	_, drains := s.addresses[a]
	_, onLink := s.have.Addresses[a]
	_, wanted := s.want.addresses[a]
	return drains && onLink && !wanted
}

func (s *shrinking) freeAddresses() {
	for _, a := range sorted(surplus(s.keys.addresses, s.want.addresses, s.have.Addresses), netip.Addr.Compare) {
		if _, drains := s.addresses[a]; drains {
			s.rest.address(a)
			continue
		}
		s.ops = append(s.ops, Op{Kind: DeleteAddress, Addr: a})
	}
	for _, key := range s.contested {
		a := key.Addr.Addr()
		_, there := s.have.Addresses[a]
		if op := (Op{Kind: DeleteAddress, Addr: a}); there && s.voidAddress(a) && !slices.Contains(s.ops, op) {
			s.ops = append(s.ops, op)
		}
	}
}

func (s *shrinking) entries() {
	for _, e := range sorted(surplus(s.keys.entries, s.want.entries, s.have.Entries), compareEntries) {
		use, kept := s.ours[e.Set]
		if !kept {
			continue
		}
		drains := false
		switch use {
		case serverUse:
			_, drains = s.rest.servers[serverOfEntry(e)]
		case addressUse:
			_, drains = s.addresses[e.Net.Addr()]
		}
		if drains {
			s.rest.entry(e)
			continue
		}
		s.ops = append(s.ops, Op{Kind: DeleteEntry, Entry: e})
	}
	for _, key := range s.contested {
		for _, e := range s.voids(key) {
			_, wanted := s.want.entries[e]
			if op := (Op{Kind: DeleteEntry, Entry: e}); wanted && !slices.Contains(s.ops, op) {
				s.ops = append(s.ops, op)
			}
		}
	}
}
