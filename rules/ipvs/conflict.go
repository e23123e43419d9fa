package ipvs

import (
	"net/netip"
	"slices"
)

// conflict records that the kernel has a server that the planner did not know of (EEXIST on
// addServer): it belongs to another program. The result takes back what would make it ours.
func (p *planner) conflict(server ServerKey) []operation {
	p.foreign[server] = struct{}{}
	p.observed.Servers[server] = Server{}
	var ops []operation
	for _, e := range p.claiming(server) {
		ops = append(ops, operation{Kind: deleteEntry, Entry: e})
	}
	return ops
}

// skip reports whether an operation that was planned before a conflict must be left out because of
// it.
func (p *planner) skip(op operation) bool {
	switch op.Kind {
	case addEntry:
		return p.claimsForeign(op.Entry)
	case addAddress:
		return p.onlyForeign(op.Addr)
	case deleteAddress, deleteEntry:
		return false
	default:
		return p.isForeign(op.Destination.Server)
	}
}

// claimsForeign reports whether an entry would make a server of another program ours.
func (p *planner) claimsForeign(e Entry) bool {
	switch keptSets[e.Set] {
	case serverUse:
		return p.isForeign(listedServer(e))
	case addressUse:
		return p.onlyForeign(e.Net.Addr())
	default:
		return false
	}
}

// onlyForeign reports whether an address is desired only for servers that belong to other programs.
// On our link it would make them ours.
func (p *planner) onlyForeign(a netip.Addr) bool {
	concerned := false
	for key := range p.foreign {
		concerned = concerned || key.Addr.Addr() == a && has(p.desired.servers, key)
	}
	return concerned && !slices.ContainsFunc(p.desiredOn(a), func(key ServerKey) bool { return !p.isForeign(key) })
}

// claiming returns the entries in the kernel that would make a server of another program ours.
func (p *planner) claiming(server ServerKey) []Entry {
	n := server.sets()
	all := []Entry{{Set: n.ips, Net: netip.PrefixFrom(server.Addr.Addr(), server.Addr.Addr().BitLen())}}
	for i, set := range n.ofServers() {
		all = slices.Insert(all, i, entryListing(set, server))
	}
	return slices.DeleteFunc(all, func(e Entry) bool { return !has(p.observed.Entries, e) || !p.claimsForeign(e) })
}
