package watch

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

const (
	// unitsMax is how many units of one Node are watched one by one. If more are named, or were
	// named within the last lingering, one watch takes all Nodes.
	unitsMax = 8
	// unitNodesMax is how many Nodes the watches of several units may hold together, before one watch
	// takes all Nodes. Keys that all Nodes share would else read each Node several times.
	unitNodesMax = 2000
	// lingering is how long a watch goes on that is not needed any more, so that Services that come
	// and go list each unit once in that time.
	lingering = 5 * time.Minute
	// bootLimit is how long the first Snapshot waits for units that cannot be read, on a machine
	// without any rules: it would wait to protect nothing, and no Service is reachable meanwhile.
	bootLimit = 30 * time.Second
)

// unitPlan decides which units are watched, and which labels of this Node are in force: those that
// Snapshots show. It is pure. The zero value is before anything was read.
//
// Labels that change come into force once the units that they name are watched completely, so that
// no Snapshot shows a unit without its Nodes. They do so after HoldLimit at the latest, and the
// first ones after bootLimit if there are no rules that could stay in force.
type unitPlan struct {
	labels  labels.Set    // in force
	exists  bool          // this Node's object, as far as it is in force
	whole   bool          // a Snapshot can be formed: labels and exists are in force
	since   time.Time     // since when labels are not the latest; zero = they are
	limit   time.Duration // until the latest labels come into force in any case, from since on
	watches map[unit]unitWatch

	// sizes are how many Nodes were in each unit of this Node when its Nodes were last watched. They
	// stay while no Service names the key, so that naming it again lists nothing to find it out.
	sizes map[unit]int
}

type unitWatch struct {
	complete bool      // everything was read once
	idle     time.Time // since when it is not needed; zero = it is
}

// facts are what a unitPlan is decided from.
type facts struct {
	now      time.Time
	labels   labels.Set              // of this Node; nil = it does not exist
	exists   bool                    // this Node's object
	lost     bool                    // it is missing in a list, but no event has deleted it
	nodeless bool                    // there is no Node of this program: all Nodes are needed
	named    func(key string) bool   // some Service names the key
	complete func(watched unit) bool // a watch that is running has read everything
	size     func(of unit) int       // how many Nodes of a unit a complete watch holds
	written  func() bool             // the kernel holds rules of a service proxy; asked once at the most
}

// next returns the plan after the facts. Its watches are those that must run now.
func (p unitPlan) next(f facts) unitPlan {
	watches := make(map[unit]unitWatch, len(p.watches))
	for u, w := range p.watches {
		w.complete = w.complete || f.complete(u)
		watches[u] = w
	}
	p.watches = watches
	p.sizes = p.measure(f)
	p = p.bringIntoForce(f)
	needed := p.needed(p.labels, f)
	settled := !slices.ContainsFunc(needed, func(u unit) bool { return !p.watches[u].complete })
	needed = append(needed, p.needed(f.labels, f)...)
	for _, u := range needed {
		p.watches[u] = unitWatch{complete: p.watches[u].complete}
	}
	for u, w := range p.watches {
		switch covers := u.every() || u.has(p.labels) && f.named(u.key); {
		case slices.Contains(needed, u) || covers && !settled:
			w.idle = time.Time{}
		case w.idle.IsZero():
			w.idle = f.now
		}
		p.watches[u] = w
		of := u.every() || u.has(p.labels) || u.has(f.labels)
		if !w.idle.IsZero() && (!of || f.now.Sub(w.idle) >= lingering) {
			delete(p.watches, u)
		}
	}
	return p
}

// measure returns the sizes of units that are known, as numbers of Nodes.
func (p unitPlan) measure(f facts) map[unit]int {
	sizes := make(map[unit]int, len(p.sizes))
	for u, size := range p.sizes {
		if u.has(p.labels) || u.has(f.labels) {
			sizes[u] = size
		}
	}
	if p.watches[unit{}].complete {
		for _, u := range slices.Concat(unitsOf(p.labels, f.named), unitsOf(f.labels, f.named)) {
			sizes[u] = f.size(u)
		}
	}
	for u, w := range p.watches {
		if w.complete && !u.every() {
			sizes[u] = f.size(u)
		}
	}
	return sizes
}

// bringIntoForce returns p with this Node's labels of f in force, if all units that they change
// are watched, or the limit is over. It may ask f.written.
func (p unitPlan) bringIntoForce(f facts) unitPlan {
	if p.whole && p.exists == f.exists && maps.Equal(p.labels, f.labels) {
		p.since = time.Time{}
		return p
	}
	if p.since.IsZero() {
		p.since, p.limit = f.now, HoldLimit
		if !p.whole {
			p.limit = bootLimit
		}
	}
	missing := slices.ContainsFunc(unitsOf(f.labels, f.named), func(u unit) bool {
		unchanged := p.whole && p.exists && u.has(p.labels)
		return !unchanged && !p.covered(u)
	}) || f.nodeless && !p.covered(unit{})
	ready, waited := !missing && !f.lost, f.now.Sub(p.since)
	if !ready && waited >= bootLimit && p.limit == bootLimit && f.written() {
		p.limit = HoldLimit
	}
	if ready || waited >= p.limit {
		p.labels, p.exists, p.whole, p.since = f.labels, f.exists, true, time.Time{}
	}
	return p
}

// covered reports whether all Nodes of a unit are known.
func (p unitPlan) covered(u unit) bool { return p.watches[u].complete || p.watches[unit{}].complete }

// needed returns the units to watch for a Node with these labels; the zero unit has all Nodes.
func (p unitPlan) needed(node labels.Set, f facts) []unit {
	if f.nodeless {
		return []unit{{}}
	}
	units := unitsOf(node, f.named)
	lingers, size := 0, 0
	for _, u := range units {
		size += p.sizes[u]
	}
	for u := range p.watches {
		if !u.every() && u.has(node) && !f.named(u.key) {
			lingers++
		}
	}
	if len(units)+lingers > unitsMax && len(units) > 0 || size > unitNodesMax && len(units) > 1 {
		return []unit{{}}
	}
	return p.oneUnmeasured(units)
}

// oneUnmeasured takes out of units those of unknown size that are not watched yet, except one
// if none is. A Service may name keys that all Nodes share: several watches at once would read
// each Node several times before their sizes are known.
func (p unitPlan) oneUnmeasured(units []unit) []unit {
	unmeasured := func(u unit) bool { _, measured := p.sizes[u]; return !measured }
	runs := func(u unit) bool { _, is := p.watches[u]; return is }
	begun := slices.ContainsFunc(units, func(u unit) bool { return unmeasured(u) && runs(u) })
	return slices.DeleteFunc(units, func(u unit) bool {
		if !unmeasured(u) || runs(u) {
			return false
		}
		first := !begun
		begun = true
		return !first
	})
}

// watched returns topology.Snapshot's Watched: nil if every Node is known.
func (p unitPlan) watched() map[string]bool {
	if p.watches[unit{}].complete {
		return nil
	}
	keys := map[string]bool{}
	for u, w := range p.watches {
		if w.complete && u.has(p.labels) {
			keys[u.key] = true
		}
	}
	return keys
}

// deadline returns when next must be called at the latest, whatever happens; zero = it need not be.
func (p unitPlan) deadline() (first time.Time) {
	if !p.since.IsZero() {
		first = p.since.Add(p.limit)
	}
	for _, w := range p.watches {
		if !w.idle.IsZero() {
			first = earlier(first, w.idle.Add(lingering))
		}
	}
	return first
}
