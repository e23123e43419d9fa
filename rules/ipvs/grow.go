package ipvs

import (
	"net/netip"
	"slices"
)

// grow plans what is added or changed, in this order: set entries, servers, real servers,
// addresses. An entry comes before its server, so that the server is ours from the first moment. An
// address comes last, because packets to it arrive from then on.
func (p *planner) grow(limits) []operation {
	t, desired, observed := p.touched, p.desired, &p.observed
	entries := slices.SortedFunc(missing(t.entries, desired.entries, observed.Entries, exists), compareEntries)
	unlisted := p.unlisted()
	servers := slices.SortedFunc(missing(t.servers, desired.servers, observed.Servers, sameServer), compareServers)
	destinations := slices.SortedFunc(missing(t.destinations, desired.destinations, observed.Destinations, sameDestination), compareDestinations)
	addresses := slices.SortedFunc(missing(t.addresses, desired.addresses, observed.Addresses, exists), netip.Addr.Compare)

	ops := make([]operation, 0, len(entries)+len(unlisted)+len(servers)+len(destinations)+len(addresses))
	add := func(op operation) {
		if !p.skip(op) {
			ops = append(ops, op)
		}
	}
	for _, e := range entries {
		add(operation{Kind: addEntry, Entry: e})
	}
	for _, key := range unlisted {
		add(operation{Kind: addEntry, Entry: entryListing(key.sets().externalIP, key)})
	}
	for _, key := range servers {
		op := operation{Kind: addServer, Destination: DestinationKey{Server: key}, Server: desired.servers[key]}
		if has(observed.Servers, key) {
			op.Kind = updateServer
		}
		add(op)
	}
	for _, d := range destinations {
		op := operation{Kind: addDestination, Destination: d, Weight: 1}
		if has(observed.Destinations, d) {
			op.Kind = updateDestination
		}
		add(op)
	}
	for _, a := range addresses {
		add(operation{Kind: addAddress, Addr: a})
	}
	return ops
}

func sameServer(_ ServerKey, desired, observed Server) bool { return desired == observed }

func sameDestination(_ DestinationKey, _ int, observed Destination) bool {
	return observed == Destination{Weight: 1}
}

// unlisted returns surplus servers that only a set of kube-proxy's or their address makes ours;
// nil unless the plan compares everything. That set goes before they have drained, and the
// address may, so grow lists them in a set of ours. It takes the one of servers whose clients
// are masqueraded: until the chains are written, kube-proxy's own rules read it, and a NodePort
// that is not masqueraded gets no answer.
func (p *planner) unlisted() []ServerKey {
	if !p.touched.all() {
		return nil
	}
	o := p.ownership(p.observed)
	return slices.DeleteFunc(slices.SortedFunc(surplus(nil, p.desired.servers, p.observed.Servers), compareServers), func(key ServerKey) bool {
		return p.isForeign(key) || o.listed(key)
	})
}

// needing returns the desired servers that cannot exist without an operation of grow.
func (p *planner) needing(op operation) []ServerKey {
	switch op.Kind {
	case addServer, updateServer, addDestination, updateDestination:
		return p.desiredAt(op.Destination.Server)
	case addAddress:
		return p.desiredOn(op.Addr)
	case addEntry:
		switch keptSets[op.Entry.Set] {
		case serverUse:
			return p.desiredAt(listedServer(op.Entry))
		case addressUse:
			return p.desiredOn(op.Entry.Net.Addr())
		}
	}
	return nil
}

func (p *planner) desiredOn(a netip.Addr) []ServerKey {
	var on []ServerKey
	for key := range p.desired.servers {
		if key.Addr.Addr() == a {
			on = append(on, key)
		}
	}
	return on
}

// desiredAt returns a server if it is desired, else nil.
func (p *planner) desiredAt(key ServerKey) []ServerKey {
	if !has(p.desired.servers, key) {
		return nil
	}
	return []ServerKey{key}
}
