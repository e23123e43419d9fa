package ipvs

import (
	"maps"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/topology"
)

// desiredServers is the State that all Services together need. An update costs as much as the
// servicePlans that come and go. What several of them need is counted.
//
// No two slots have the same key: see rules.Ruleset.NodePortsTaken.
type desiredServers struct {
	plans        []*servicePlan
	services     map[ServerKey]*rules.Service // whose it is, also where chains serve it
	servers      map[ServerKey]Server
	destinations map[DestinationKey]int
	addresses    map[netip.Addr]int
	entries      map[Entry]int
}

func newDesiredServers() *desiredServers {
	return &desiredServers{
		services:     map[ServerKey]*rules.Service{},
		servers:      map[ServerKey]Server{},
		destinations: map[DestinationKey]int{},
		addresses:    map[netip.Addr]int{},
		entries:      map[Entry]int{},
	}
}

// update makes d what these servicePlans need, sorted by Name, and notes in t the keys that the
// change touches.
func (d *desiredServers) update(plans []*servicePlan, t touched) {
	var gone, came []*servicePlan
	old := d.plans
	for _, p := range plans {
		for len(old) > 0 && old[0] != p && topology.CompareNames(old[0].service.Name, p.service.Name) < 0 {
			gone, old = append(gone, old[0]), old[1:]
		}
		if len(old) > 0 && old[0] == p {
			old = old[1:]
			continue
		}
		came = append(came, p)
	}
	gone = append(gone, old...)
	d.plans = plans
	for _, p := range gone {
		for _, slot := range p.slots {
			delete(d.services, slot.key)
			delete(d.servers, slot.key)
			d.count(slot, -1, t)
		}
	}
	for _, p := range came {
		for _, slot := range p.slots {
			d.services[slot.key] = p.service
			if slot.set != "" {
				d.servers[slot.key] = p.server
			}
			d.count(slot, 1, t)
		}
	}
}

// count adds by to how often d needs each thing of a slot, and notes these things in t.
func (d *desiredServers) count(slot serverSlot, by int, t touched) {
	slot.needs(func(e Entry) {
		addCount(d.entries, e, by)
		note(t.entries, e)
	})
	if slot.onLink {
		addCount(d.addresses, slot.key.Addr.Addr(), by)
		note(t.addresses, slot.key.Addr.Addr())
	}
	if slot.set == "" {
		return
	}
	note(t.servers, slot.key)
	for _, e := range slot.endpoints {
		key := DestinationKey{Server: slot.key, Addr: e}
		addCount(d.destinations, key, by)
		note(t.destinations, key)
	}
}

// addCount adds by to the counter of key, and deletes a counter that is zero.
func addCount[K comparable](counts map[K]int, key K, by int) {
	if counts[key] += by; counts[key] <= 0 {
		delete(counts, key)
	}
}

// needs calls each with every set entry of a slot.
func (slot serverSlot) needs(each func(Entry)) {
	names := slot.key.sets()
	addr, port := slot.key.Addr.Addr(), slot.key.Addr.Port()
	host := netip.PrefixFrom(addr, addr.BitLen())
	if slot.bits > 0 {
		each(Entry{Set: names.chains, Net: netip.PrefixFrom(addr, slot.bits), Proto: slot.key.Proto, Port: port})
	}
	if slot.onLink {
		each(Entry{Set: names.ips, Net: host})
	}
	if slot.set == "" {
		return
	}
	each(Entry{Set: slot.set, Net: host, Proto: slot.key.Proto, Port: port})
	for _, e := range slot.endpoints {
		each(Entry{
			Set: names.loopBack, Net: netip.PrefixFrom(e.Addr(), e.Addr().BitLen()),
			Proto: slot.key.Proto, Port: e.Port(), Peer: e.Addr(),
		})
	}
}

// state returns d as a State of its own.
func (d *desiredServers) state() State {
	s := State{
		Servers:      maps.Clone(d.servers),
		Destinations: make(map[DestinationKey]Destination, len(d.destinations)),
		Addresses:    make(map[netip.Addr]struct{}, len(d.addresses)),
		Entries:      make(map[Entry]struct{}, len(d.entries)),
	}
	for key := range d.destinations {
		s.Destinations[key] = Destination{Weight: 1}
	}
	for a := range d.addresses {
		s.Addresses[a] = struct{}{}
	}
	for e := range d.entries {
		s.Entries[e] = struct{}{}
	}
	return s
}

// leftUnit reports whether a real server is out of the unit of the Service that has the address and
// port of its virtual server.
func (d *desiredServers) leftUnit(key DestinationKey) bool {
	return has(d.services, key.Server) && !d.serves(key)
}

// serves reports whether a real server is an endpoint that serves, even if it terminates, in the
// unit of the Service that has the address and port of its virtual server.
func (d *desiredServers) serves(key DestinationKey) bool {
	s, found := d.services[key.Server]
	return found && slices.Contains(s.Serving, key.Addr)
}
