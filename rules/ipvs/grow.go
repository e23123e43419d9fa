package ipvs

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"
)

// Grow is what is added or changed, in order: set entries, servers, destinations,
// addresses. A server is listed before it is there, so that it is never there without being
// known as ours, and complete before packets to a new address reach it.
func (p *Planner) Grow() []Op {
	p.init()
	t := p.keys()
	entries := sorted(missing(t.entries, p.want.entries, p.have.Entries, exists), compareEntries)
	marks := p.unlisted()
	servers := sorted(missing(t.servers, p.want.servers, p.have.Servers, sameServer), compareServers)
	destinations := sorted(missing(t.destinations, p.want.destinations, p.have.Destinations, sameDestination), compareDestinations)
	addresses := sorted(missing(t.addresses, p.want.addresses, p.have.Addresses, exists), netip.Addr.Compare)

	ops := make([]Op, 0, len(entries)+len(marks)+len(servers)+len(destinations)+len(addresses))
	add := func(op Op) {
		if !p.Skip(op) {
			ops = append(ops, op)
		}
	}
	for _, e := range entries {
		add(Op{Kind: AddEntry, Entry: e})
	}
	for _, key := range marks {
		add(Op{Kind: AddEntry, Entry: entryOfServer(p.want.names.of(key).externalIP, key)})
	}
	for _, key := range servers {
		op := Op{Kind: AddServer, Destination: DestinationKey{Server: key}, Server: p.want.servers[key]}
		if _, there := p.have.Servers[key]; there {
			op.Kind = UpdateServer
		}
		add(op)
	}
	for _, d := range destinations {
		op := Op{Kind: AddDestination, Destination: d, Weight: 1}
		if _, there := p.have.Destinations[d]; there {
			op.Kind = UpdateDestination
		}
		add(op)
	}
	for _, a := range addresses {
		add(Op{Kind: AddAddress, Addr: a})
	}
	return ops
}

func sameServer(_ ServerKey, want, have Server) bool { return want == have }

func sameDestination(_ DestinationKey, _ int, have Destination) bool {
	return have == Destination{Weight: 1}
}

// keys are those to compare; its maps are nil for all.
func (p *Planner) keys() touched {
	if p.whole {
		return touched{}
	}
	return *p.touched
}

// unlisted are the servers of ours that are to go and that only a set of kube-proxy's or
// their address makes ours: the set is about to go, and the address may, before they have
// drained. They are listed with those that masquerade, for until the chains are written
// kube-proxy's own rules read that set: a NodePort that is not masqueraded is not answered.
func (p *Planner) unlisted() []ServerKey {
	if !p.whole {
		return nil
	}
	m := marks{Observed: p.have, names: &p.want.names, exclude: p.Exclude}
	return slices.DeleteFunc(sorted(surplus(nil, p.want.servers, p.have.Servers), compareServers), func(key ServerKey) bool {
		return p.isForeign(key) || m.listed(key)
	})
}

func (p *Planner) isForeign(key ServerKey) bool {
	_, foreign := p.foreign[key]
	return foreign
}

// voidEntry reports whether an entry would make a server ours that is not.
func (p *Planner) voidEntry(e Entry) bool {
	switch p.ours[e.Set] {
	case serverUse:
		return p.isForeign(serverOfEntry(e))
	case addressUse:
		return p.voidAddress(e.Net.Addr())
	default:
		return false
	}
}

// voidAddress reports whether an address is wanted only for servers that are not ours: on
// our link it would make them ours.
func (p *Planner) voidAddress(a netip.Addr) bool {
	concerned := false
	for key := range p.foreign {
		_, wanted := p.want.servers[key]
		concerned = concerned || wanted && key.Addr.Addr() == a
	}
	if !concerned {
		return false
	}
	for key := range p.want.servers {
		if key.Addr.Addr() == a && !p.isForeign(key) {
			return false
		}
	}
	return true
}

// Conflict records that the kernel has a server that p did not know of (EEXIST on
// AddServer): it is somebody else's. The result takes back what would make it ours.
func (p *Planner) Conflict(server ServerKey) []Op {
	p.init()
	p.foreign[server] = struct{}{}
	p.have.Servers[server] = Server{}
	var ops []Op
	for _, e := range p.voids(server) {
		ops = append(ops, Op{Kind: DeleteEntry, Entry: e})
	}
	return ops
}

// voids are the entries that the kernel has and that would make somebody else's server ours.
func (p *Planner) voids(server ServerKey) []Entry {
	n := p.want.names.of(server)
	all := []Entry{
		entryOfServer(n.clusterIP, server), entryOfServer(n.externalIP, server), entryOfServer(n.externalIPLocal, server),
		{Set: n.ips, Net: netip.PrefixFrom(server.Addr.Addr(), server.Addr.Addr().BitLen())},
	}
	return slices.DeleteFunc(all, func(e Entry) bool {
		_, there := p.have.Entries[e]
		return !there || !p.voidEntry(e)
	})
}

// Skip reports whether an Op of an earlier plan is void because of a Conflict since.
func (p *Planner) Skip(op Op) bool {
	switch op.Kind {
	case AddEntry:
		return p.voidEntry(op.Entry)
	case AddAddress:
		return p.voidAddress(op.Addr)
	case DeleteAddress, DeleteEntry:
		return false
	default:
		return p.isForeign(op.Destination.Server)
	}
}

// Needing are the wanted servers that cannot be without an Op of Grow.
func (p *Planner) Needing(op Op) []ServerKey {
	p.init()
	switch op.Kind {
	case AddServer, UpdateServer, AddDestination, UpdateDestination:
		return p.wanted(op.Destination.Server)
	case AddAddress:
		return p.wantedOn(op.Addr)
	case AddEntry:
		switch p.ours[op.Entry.Set] {
		case serverUse:
			return p.wanted(serverOfEntry(op.Entry))
		case addressUse:
			return p.wantedOn(op.Entry.Net.Addr())
		}
	}
	return nil
}

// wantedOn are the wanted servers on an address.
func (p *Planner) wantedOn(a netip.Addr) []ServerKey {
	var on []ServerKey
	for key := range p.want.servers {
		if key.Addr.Addr() == a {
			on = append(on, key)
		}
	}
	return on
}

// wanted is a server, if it is wanted.
func (p *Planner) wanted(key ServerKey) []ServerKey {
	if _, wanted := p.want.servers[key]; !wanted {
		return nil
	}
	return []ServerKey{key}
}

func sorted[K any](keys iter.Seq[K], compare func(a, b K) int) []K {
	return slices.SortedFunc(keys, compare)
}

func compareServers(a, b ServerKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto))
}

func compareDestinations(a, b DestinationKey) int {
	return cmp.Or(compareServers(a.Server, b.Server), a.Addr.Compare(b.Addr))
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		strings.Compare(a.Set, b.Set), a.Net.Addr().Compare(b.Net.Addr()), cmp.Compare(a.Net.Bits(), b.Net.Bits()),
		cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port), a.Peer.Compare(b.Peer),
	)
}
