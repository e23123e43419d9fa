package rules

import (
	"maps"
	"net/netip"
	"slices"
)

// claimIndex knows who claims each address, port and protocol, and who gets it: the Service with
// the best claim, unless the address is reserved. After add and remove, settle decides again about
// the keys that were named. Any number of Services may claim one key, so each key is decided once.
type claimIndex struct {
	reserved reserved
	ports    map[claimedPort]map[netip.Addr]contest

	touched map[ClaimKey]place              // since the last settle: the holder before; gone = it was removed
	dropped map[ClaimKey]map[place]struct{} // since then: those that are not among the others any more
	added   map[*memory]struct{}

	shadowing map[ClaimKey]struct{}
	sorted    []ClaimKey // shadowing; nil = to be sorted
}

// claimedPort is a ClaimKey without the address.
type claimedPort struct {
	port     uint16
	protocol uint8
	family   Family
}

// contest is all claims to one ClaimKey.
type contest struct {
	holder place // whose it is; the zero place = it is reserved from all. Before settle: any
	others []place
}

type place struct {
	memory   *memory
	frontend int
}

// gone is no place.
var gone = place{frontend: -1}

func (p place) claim() claim {
	s := p.memory.whole
	return claim{s, s.Frontends[p.frontend].Kind}
}

func (p place) isNodePort() bool { return p.memory != nil && p.claim().Kind == NodePort }

func newClaimIndex(reserved reserved) *claimIndex {
	return &claimIndex{
		reserved: reserved, ports: map[claimedPort]map[netip.Addr]contest{},
		touched: map[ClaimKey]place{}, dropped: map[ClaimKey]map[place]struct{}{}, added: map[*memory]struct{}{}, shadowing: map[ClaimKey]struct{}{},
	}
}

func (x *claimIndex) find(k ClaimKey) contest { return x.ports[k.claimedPort()][k.Addr.Addr()] }

func (k ClaimKey) claimedPort() claimedPort {
	return claimedPort{k.Addr.Port(), k.Protocol, FamilyOf(k.Addr.Addr())}
}

func (x *claimIndex) set(key ClaimKey, c contest) {
	port, addr := key.claimedPort(), key.Addr.Addr()
	group := x.ports[port]
	switch {
	case c.holder.memory != nil || len(c.others) > 0:
		if group == nil {
			group = map[netip.Addr]contest{}
			x.ports[port] = group
		}
		group[addr] = c
	default:
		if delete(group, addr); len(group) == 0 {
			delete(x.ports, port)
		}
	}
}

func (x *claimIndex) add(m *memory) {
	x.added[m] = struct{}{}
	for i, f := range m.whole.Frontends {
		key, p := m.whole.claimKey(f), place{m, i}
		c := x.find(key)
		if _, found := x.touched[key]; !found {
			x.touched[key] = c.holder
		}
		switch _, back := x.dropped[key][p]; {
		case back: // it is still among the others
			delete(x.dropped[key], p)
			continue
		case c.holder.memory == nil:
			c.holder = p
		default:
			c.others = append(c.others, p)
		}
		x.set(key, c)
	}
}

// remove drops the claims of a Service. Where it is one of many others, settle leaves it out.
func (x *claimIndex) remove(m *memory) {
	delete(x.added, m)
	for i, f := range m.whole.Frontends {
		key, p := m.whole.claimKey(f), place{m, i}
		c := x.find(key)
		if c.holder == p {
			x.touched[key] = gone
			c.holder = place{}
			x.set(key, c)
			continue
		}
		if x.dropped[key] == nil {
			x.dropped[key] = map[place]struct{}{}
		}
		x.dropped[key][p] = struct{}{}
	}
}

// leaveOut takes those that were dropped from the others, one pass for each key.
func (x *claimIndex) leaveOut() {
	for key, dropped := range x.dropped {
		c := x.find(key)
		c.others = slices.DeleteFunc(c.others, func(p place) bool {
			_, found := dropped[p]
			return found
		})
		x.set(key, c)
	}
	x.dropped = map[ClaimKey]map[place]struct{}{}
}

// settle decides who gets the keys that were named since the last call. It returns the Services
// that may get other Frontends than before, or have other conflicts.
func (x *claimIndex) settle() map[*memory]struct{} {
	x.leaveOut()
	affected := x.added
	for key, before := range x.touched {
		c := x.find(key)
		x.choose(&c)
		x.set(key, c)
		if c.holder == before {
			continue
		}
		for _, p := range c.others {
			affected[p.memory] = struct{}{}
		}
		if c.holder.memory != nil {
			affected[c.holder.memory] = struct{}{}
		}
	}
	for key := range x.touched { // once all holders are known
		x.shade(key)
	}
	x.touched, x.added = map[ClaimKey]place{}, map[*memory]struct{}{}
	return affected
}

// choose makes the best claim that is not reserved the holder.
func (x *claimIndex) choose(c *contest) {
	if c.holder.memory != nil && x.isReserved(c.holder) {
		c.holder, c.others = place{}, append(c.others, c.holder)
	}
	best := -1
	for i, p := range c.others {
		if !x.isReserved(p) && (best < 0 || p.claim().compare(c.others[best].claim()) < 0) {
			best = i
		}
	}
	switch {
	case best < 0:
	case c.holder.memory == nil:
		c.holder = c.others[best]
		c.others = slices.Delete(c.others, best, best+1)
	case c.others[best].claim().compare(c.holder.claim()) < 0:
		c.holder, c.others[best] = c.others[best], c.holder
	}
}

func (x *claimIndex) isReserved(p place) bool {
	return x.reserved.reservation(p.memory.whole, p.memory.whole.Frontends[p.frontend]) != NotReserved
}

// lostBy returns the ascending indexes of the Frontends that a Service does not get, and its
// conflicts with other Services and reservations. A Service that names an address twice gets it
// in the better field; that is not among the conflicts.
func (x *claimIndex) lostBy(m *memory) (lost []int, conflicts []AddressConflict) {
	s := m.whole
	for i, f := range s.Frontends {
		holder := x.find(s.claimKey(f)).holder
		if holder == (place{m, i}) {
			continue
		}
		conflict := AddressConflict{Service: s.Name, Kind: f.Kind, Addr: f.Addr, Reserved: x.reserved.reservation(s, f)}
		if conflict.Reserved == NotReserved {
			conflict.Holder, conflict.Held = holder.memory.whole.Name, holder.claim().Kind
		}
		lost = append(lost, i)
		if conflict.Holder.NamespacedName != s.Name.NamespacedName {
			conflicts = append(conflicts, conflict)
		}
	}
	return lost, conflicts
}

// shade updates shadowing after another Frontend, or none, got a key.
func (x *claimIndex) shade(key ClaimKey) {
	port, addr := key.claimedPort(), key.Addr.Addr()
	group := x.ports[port]
	everywhere := port.family.Unspecified()
	nodePort := group[everywhere].holder.isNodePort()
	update := func(a netip.Addr) {
		k := ClaimKey{netip.AddrPortFrom(a, port.port), port.protocol}
		holder := group[a].holder
		_, was := x.shadowing[k]
		switch is := nodePort && holder.memory != nil && !holder.isNodePort(); {
		case is && !was:
			x.shadowing[k], x.sorted = struct{}{}, nil
		case was && !is:
			delete(x.shadowing, k)
			x.sorted = nil
		}
	}
	update(addr)
	if addr == everywhere {
		for a := range group {
			update(a)
		}
	}
}

// shadows returns the addresses of other Frontends that have the port and protocol of a
// NodePort, sorted.
func (x *claimIndex) shadows() []ClaimKey {
	if x.sorted == nil {
		x.sorted = slices.SortedFunc(maps.Keys(x.shadowing), ClaimKey.Compare)
	}
	return x.sorted
}
