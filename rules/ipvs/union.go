package ipvs

import (
	"maps"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/topology"
)

// union is the State of many Pieces, kept as they come and go at the cost of those that do.
// What several of them need is counted.
//
// Where two name the same address, port and protocol, one has it, whatever came first: the one
// that rules.Claim says. rules.Compile has decided about Frontends; what is left is a NodePort
// on an address of this machine that is also an external one.
type union struct {
	names        setNames
	pieces       []*Piece
	winners      map[ServerKey]claim
	rivals       map[ServerKey][]claim // those that lost; nearly always empty
	servers      map[ServerKey]Server
	destinations map[DestinationKey]int
	addresses    map[netip.Addr]int
	entries      map[Entry]int
}

// claim is a front with the Piece that it belongs to.
type claim struct {
	piece *Piece
	front *front
}

func newUnion() *union {
	return &union{
		names:        newSetNames(),
		winners:      map[ServerKey]claim{},
		rivals:       map[ServerKey][]claim{},
		servers:      map[ServerKey]Server{},
		destinations: map[DestinationKey]int{},
		addresses:    map[netip.Addr]int{},
		entries:      map[Entry]int{},
	}
}

// update makes u the union of these Pieces, sorted by Name, and notes in t the keys that
// the change touches. A nil t notes nothing.
func (u *union) update(pieces []*Piece, t *touched) {
	var gone, came []*Piece
	old := u.pieces
	for _, p := range pieces {
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
	u.pieces = pieces
	for _, p := range gone {
		for i := range p.fronts {
			u.retract(claim{p, &p.fronts[i]}, t)
		}
	}
	for _, p := range came {
		for i := range p.fronts {
			u.assert(claim{p, &p.fronts[i]}, t)
		}
	}
}

func (u *union) assert(c claim, t *touched) {
	key := c.front.key
	holder, taken := u.winners[key]
	switch {
	case !taken:
		u.put(c, t)
	case c.before(holder):
		u.drop(holder, t)
		u.rivals[key] = append(u.rivals[key], holder)
		u.put(c, t)
	default:
		u.rivals[key] = append(u.rivals[key], c)
	}
}

func (u *union) retract(c claim, t *touched) {
	key := c.front.key
	rivals := u.rivals[key]
	if u.winners[key] != c {
		u.setRivals(key, slices.DeleteFunc(rivals, func(r claim) bool { return r == c }))
		return
	}
	u.drop(c, t)
	if len(rivals) == 0 {
		return
	}
	next := slices.MinFunc(rivals, claim.compare)
	u.setRivals(key, slices.DeleteFunc(rivals, func(r claim) bool { return r == next }))
	u.put(next, t)
}

func (u *union) setRivals(key ServerKey, rivals []claim) {
	if len(rivals) == 0 {
		delete(u.rivals, key)
		return
	}
	u.rivals[key] = rivals
}

func (c claim) before(d claim) bool { return c.compare(d) < 0 }

func (c claim) compare(d claim) int {
	return rules.Claim{Service: c.piece.service, Kind: c.front.kind}.Compare(rules.Claim{Service: d.piece.service, Kind: d.front.kind})
}

// put adds what a front needs.
func (u *union) put(c claim, t *touched) {
	f := c.front
	u.winners[f.key] = c
	u.needs(c, func(e Entry) { u.entries[e]++; t.entry(e) })
	if f.onLink {
		u.addresses[f.key.Addr.Addr()]++
		t.address(f.key.Addr.Addr())
	}
	if f.set == "" {
		return
	}
	u.servers[f.key] = c.piece.server
	t.server(f.key)
	for _, e := range f.endpoints {
		d := DestinationKey{Server: f.key, Addr: e}
		u.destinations[d]++
		t.destination(d)
	}
}

// drop takes away what put added.
func (u *union) drop(c claim, t *touched) {
	f := c.front
	delete(u.winners, f.key)
	u.needs(c, func(e Entry) { decrease(u.entries, e); t.entry(e) })
	if f.onLink {
		decrease(u.addresses, f.key.Addr.Addr())
		t.address(f.key.Addr.Addr())
	}
	if f.set == "" {
		return
	}
	delete(u.servers, f.key)
	t.server(f.key)
	for _, e := range f.endpoints {
		d := DestinationKey{Server: f.key, Addr: e}
		decrease(u.destinations, d)
		t.destination(d)
	}
}

func decrease[K comparable](counts map[K]int, k K) {
	if counts[k]--; counts[k] <= 0 {
		delete(counts, k)
	}
}

// needs calls each with every set entry of a front.
func (u *union) needs(c claim, each func(Entry)) {
	f, names := c.front, u.names.of(c.front.key)
	addr, port := f.key.Addr.Addr(), f.key.Addr.Port()
	whole := netip.PrefixFrom(addr, addr.BitLen())
	if f.bits > 0 {
		each(Entry{Set: names.chains, Net: netip.PrefixFrom(addr, f.bits), Proto: f.key.Proto, Port: port})
	}
	if f.onLink {
		each(Entry{Set: names.ips, Net: whole})
	}
	if f.set == "" {
		return
	}
	each(Entry{Set: names.server(f.set), Net: whole, Proto: f.key.Proto, Port: port})
	for _, e := range f.endpoints {
		each(Entry{
			Set: names.loopBack, Net: netip.PrefixFrom(e.Addr(), e.Addr().BitLen()),
			Proto: f.key.Proto, Port: e.Port(), Peer: e.Addr(),
		})
	}
}

// state is u as a State of its own.
func (u *union) state() State {
	s := State{
		Servers:      maps.Clone(u.servers),
		Destinations: make(map[DestinationKey]Destination, len(u.destinations)),
		Addresses:    make(map[netip.Addr]struct{}, len(u.addresses)),
		Entries:      make(map[Entry]struct{}, len(u.entries)),
	}
	for d := range u.destinations {
		s.Destinations[d] = Destination{Weight: 1}
	}
	for a := range u.addresses {
		s.Addresses[a] = struct{}{}
	}
	for e := range u.entries {
		s.Entries[e] = struct{}{}
	}
	return s
}

// left reports whether the Service that has a destination's virtual server as a Frontend
// does not have it in its unit any more.
func (u *union) left(d DestinationKey) bool {
	_, found := u.winners[d.Server]
	return found && !u.serves(d)
}

// serves reports whether a destination is an endpoint in the unit that serves, though it may
// be about to end, of the Service that has its virtual server as a Frontend.
func (u *union) serves(d DestinationKey) bool {
	c, found := u.winners[d.Server]
	return found && slices.Contains(c.piece.service.Serving, d.Addr)
}
