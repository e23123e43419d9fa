package ipvs

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// planner decides which operations the kernel gets. It holds what is desired, what was observed in
// the kernel, and two things that are in neither: which virtual servers belong to other programs,
// and since when a real server drains. It does no I/O. The zero value is ready for use. One
// goroutine uses it.
//
// setObserved comes first, and again whenever the kernel may differ from what was observed, as
// after a sync that failed. After each operation that succeeded comes done. An operation for which
// skip reports true is left out.
type planner struct {
	// exclude are the addresses on which a virtual server belongs to another program although a set
	// of kube-proxy's, or our link, would make it ours. It does not change.
	exclude []netip.Prefix

	desired  *desiredServers
	observed kernelState // and what was done since
	touched  touched     // what a plan compares: what changed, and what could not be deleted yet
	foreign  map[ServerKey]struct{}
	drains   map[DestinationKey]time.Time // since when

	connections map[DestinationKey]int // of drains, counted in this sync; a missing one was not counted
}

func (p *planner) init() {
	if p.desired != nil {
		return
	}
	p.desired = newDesiredServers()
	p.observed = filled(kernelState{})
	p.foreign = map[ServerKey]struct{}{}
	p.drains = map[DestinationKey]time.Time{}
}

// filled returns s with maps that can be written to.
func filled(s kernelState) kernelState {
	if s.Servers == nil {
		s.Servers = map[ServerKey]Server{}
	}
	if s.Destinations == nil {
		s.Destinations = map[DestinationKey]Destination{}
	}
	if s.Addresses == nil {
		s.Addresses = map[netip.Addr]struct{}{}
	}
	if s.Entries == nil {
		s.Entries = map[Entry]struct{}{}
	}
	return s
}

// setObserved takes over what was read from the kernel. The planner owns it from now on. The next
// plan compares everything.
//
// A server that was not there before is ours if ownership says so. One that was there keeps its
// owner: if another program flushes a set, no server of ours becomes foreign.
func (p *planner) setObserved(fresh kernelState) {
	p.init()
	fresh = filled(fresh)
	o := p.ownership(fresh)
	for key := range fresh.Servers {
		if _, known := p.observed.Servers[key]; !known && !o.has(key) {
			p.foreign[key] = struct{}{}
		}
	}
	maps.DeleteFunc(p.foreign, func(key ServerKey, _ struct{}) bool { return !has(fresh.Servers, key) })
	maps.DeleteFunc(p.drains, func(d DestinationKey, _ time.Time) bool { return !has(fresh.Destinations, d) })
	p.observed, p.touched = fresh, touched{}
}

func (p *planner) ownership(s kernelState) ownership {
	return ownership{kernelState: s, exclude: p.exclude}
}

// setDesired takes over what the kernel should hold. The next plan compares what the change
// touches.
func (p *planner) setDesired(c Compiled) {
	p.init()
	p.desired.update(c.plans, p.touched)
}

// done records that the kernel carried out an operation.
func (p *planner) done(op operation) {
	switch op.Kind {
	case addEntry:
		p.observed.Entries[op.Entry] = struct{}{}
	case deleteEntry:
		delete(p.observed.Entries, op.Entry)
	case addServer, updateServer:
		p.observed.Servers[op.Destination.Server] = op.Server
	case deleteServer:
		delete(p.observed.Servers, op.Destination.Server)
	case addDestination, updateDestination:
		p.observed.Destinations[op.Destination] = Destination{Weight: op.Weight}
	case deleteDestination:
		delete(p.observed.Destinations, op.Destination)
		delete(p.drains, op.Destination)
	case addAddress:
		p.observed.Addresses[op.Addr] = struct{}{}
	case deleteAddress:
		delete(p.observed.Addresses, op.Addr)
	}
}

// status returns the part of Status that is about the kernel's objects.
func (p *planner) status() Status {
	s := Status{
		Servers: len(p.observed.Servers) - len(p.foreign), Destinations: len(p.observed.Destinations), Draining: len(p.drains),
		Conflicts: len(p.conflicts()),
	}
	if len(p.foreign) > 0 {
		for d := range p.observed.Destinations {
			if p.isForeign(d.Server) {
				s.Destinations--
			}
		}
	}
	return s
}

// conflicts returns the desired servers that are left to another program, sorted.
func (p *planner) conflicts() []ServerKey {
	var all []ServerKey
	for key := range p.foreign {
		if has(p.desired.servers, key) {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, compareServers)
	return all
}

func (p *planner) isForeign(key ServerKey) bool { return has(p.foreign, key) }

// empty reports whether nothing of ours is left in the kernel but sets, perhaps with entries of
// kube-proxy's, and the link.
func (p *planner) empty() bool {
	for e := range p.observed.Entries {
		if has(keptSets, e.Set) {
			return false
		}
	}
	return len(p.observed.Servers) == len(p.foreign) && len(p.observed.Addresses) == 0
}

// touch makes the next plans compare what an operation is about, because it is not carried out
// now.
func (p *planner) touch(op operation) {
	switch op.Kind {
	case addEntry, deleteEntry:
		note(p.touched.entries, op.Entry)
	case addAddress, deleteAddress:
		note(p.touched.addresses, op.Addr)
	case addServer, updateServer, deleteServer:
		note(p.touched.servers, op.Destination.Server)
	default:
		note(p.touched.destinations, op.Destination)
	}
}
