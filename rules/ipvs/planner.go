package ipvs

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Planner decides what to tell the kernel. It holds what is wanted and what the kernel has,
// and what neither tells: which servers are others', and since when a destination drains.
// It does no I/O of its own. The zero value is ready for use; one goroutine may use it.
//
// Read comes first, and again whenever the kernel may differ from what it is believed to hold, as
// after a sync that failed. Then carryOut is one sync. After each Op that succeeded: Done. An
// Op for which Skip reports true is left out.
type Planner struct {
	// Exclude are the addresses on which servers are others' that only a set of kube-proxy's, or
	// our link, would make ours. It does not change.
	Exclude []netip.Prefix

	want    *union
	have    Observed
	whole   bool     // every key is to be compared, else
	touched *touched // these: what changed, and what could not yet be deleted
	foreign map[ServerKey]struct{}
	drains  map[DestinationKey]time.Time // since when
	ours    map[string]setUse            // the sets that we keep, by name
}

// setUse is what a set is for, as far as a plan must know.
type setUse uint8

const (
	otherUse   setUse = iota
	serverUse         // its entries make virtual servers ours
	addressUse        // it repeats the addresses of Link
)

// Limits bound the draining of destinations.
type Limits struct {
	Drain time.Duration // how long a destination drains at the most
	// NoDrain says that a destination of weight 0 may still get new connections on this
	// kernel: one that is not in the unit any more is deleted at once.
	NoDrain bool

	held held // families of which QuiesceServers takes nothing away
}

// Status is what a Backend holds.
type Status struct {
	Servers      int // ours
	Destinations int // of ours
	Draining     int // of Destinations
	Conflicts    int // wanted servers that are left to somebody else
}

func (p *Planner) init() {
	if p.want != nil {
		return
	}
	p.want, p.touched, p.whole = newUnion(), newTouched(), true
	p.have = filled(Observed{})
	p.foreign = map[ServerKey]struct{}{}
	p.drains = map[DestinationKey]time.Time{}
	p.ours = setUses(p.want.names)
}

func setUses(names setNames) map[string]setUse {
	uses := map[string]setUse{}
	for _, n := range names {
		uses[n.clusterIP], uses[n.externalIP], uses[n.externalIPLocal] = serverUse, serverUse, serverUse
		uses[n.ips] = addressUse
		uses[n.loopBack], uses[n.chains] = otherUse, otherUse
	}
	return uses
}

// filled is o with maps that can be written to.
func filled(o Observed) Observed {
	if o.Servers == nil {
		o.Servers = map[ServerKey]Server{}
	}
	if o.Destinations == nil {
		o.Destinations = map[DestinationKey]Destination{}
	}
	if o.Addresses == nil {
		o.Addresses = map[netip.Addr]struct{}{}
	}
	if o.Entries == nil {
		o.Entries = map[Entry]struct{}{}
	}
	return o
}

// Read takes in what the kernel was found to hold. The Planner owns it from now on. The
// next plan compares everything.
//
// A server that was not there before is ours if our marks are on it. One that was stays
// whose it was: a set that somebody flushed makes nothing foreign.
func (p *Planner) Read(fresh Observed) {
	p.init()
	fresh = filled(fresh)
	m := marks{Observed: fresh, names: &p.want.names, exclude: p.Exclude}
	for key := range fresh.Servers {
		if _, known := p.have.Servers[key]; !known && !m.has(key) {
			p.foreign[key] = struct{}{}
		}
	}
	maps.DeleteFunc(p.foreign, func(key ServerKey, _ struct{}) bool {
		_, there := fresh.Servers[key]
		return !there
	})
	maps.DeleteFunc(p.drains, func(d DestinationKey, _ time.Time) bool {
		_, there := fresh.Destinations[d]
		return !there
	})
	p.have, p.whole = fresh, true
}

// Want takes in what the kernel is to hold. The next plan compares what the change touches.
func (p *Planner) Want(c Compiled) {
	p.init()
	if p.whole {
		p.want.update(c.Pieces, nil)
		return
	}
	p.want.update(c.Pieces, p.touched)
}

// steps are how a sync is carried out.
type steps struct {
	grow        func()                                 // Want and Grow
	run         func([]Op)                             // does them one after the other
	chains      func() held                            // writes the chains, which take the place of some of what goes
	connections func() (map[DestinationKey]int, error) // counts those of Counting
}

// carryOut is one sync, in the order of its steps: at no moment has a Service neither virtual servers nor chains.
func (p *Planner) carryOut(now func() time.Time, l Limits, s steps) error {
	s.grow()
	s.run(p.Quiesce(now(), l))
	l.held = s.chains()
	if l.held == (held{true, true}) {
		return nil
	}
	s.run(p.QuiesceServers(now(), l))
	connections, err := s.connections()
	if err != nil {
		return err
	}
	s.run(l.held.without(p.Shrink(now(), l, connections)))
	return nil
}

// Done records that the kernel did an Op.
func (p *Planner) Done(op Op) {
	switch op.Kind {
	case AddEntry:
		p.have.Entries[op.Entry] = struct{}{}
	case DeleteEntry:
		delete(p.have.Entries, op.Entry)
	case AddServer, UpdateServer:
		p.have.Servers[op.Destination.Server] = op.Server
	case DeleteServer:
		delete(p.have.Servers, op.Destination.Server)
	case AddDestination, UpdateDestination:
		p.have.Destinations[op.Destination] = Destination{Weight: op.Weight}
	case DeleteDestination:
		delete(p.have.Destinations, op.Destination)
		delete(p.drains, op.Destination)
	case AddAddress:
		p.have.Addresses[op.Addr] = struct{}{}
	case DeleteAddress:
		delete(p.have.Addresses, op.Addr)
	}
}

// Status counts.
func (p *Planner) Status() Status {
	p.init()
	s := Status{
		Servers: len(p.have.Servers) - len(p.foreign), Destinations: len(p.have.Destinations), Draining: len(p.drains),
	}
	s.Conflicts = len(p.Conflicts())
	if len(p.foreign) > 0 {
		for d := range p.have.Destinations {
			if _, foreign := p.foreign[d.Server]; foreign {
				s.Destinations--
			}
		}
	}
	return s
}

// Conflicts are the wanted servers that are left to somebody else, sorted.
func (p *Planner) Conflicts() []ServerKey {
	p.init()
	var all []ServerKey
	for key := range p.foreign {
		if _, wanted := p.want.servers[key]; wanted {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, compareServers)
	return all
}

// Empty reports whether nothing of ours is left in the kernel but sets, perhaps entries of
// kube-proxy's in them, and the link.
func (p *Planner) Empty() bool {
	p.init()
	for e := range p.have.Entries {
		if _, kept := p.ours[e.Set]; kept {
			return false
		}
	}
	return len(p.have.Servers) == len(p.foreign) && len(p.have.Addresses) == 0
}

// Has is what the kernel is believed to hold. The caller must not change it.
func (p *Planner) Has() *Observed {
	p.init()
	return &p.have
}

// Counting is the destinations whose connections Shrink wants to be told, each with the
// time since which it drains. It may be empty. The caller must not change it.
func (p *Planner) Counting() map[DestinationKey]time.Time { return p.drains }
