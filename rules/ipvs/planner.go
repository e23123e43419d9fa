package ipvs

import "time"

// Planner decides what to tell the kernel. It holds what is wanted and what the kernel has,
// and what neither tells: which servers are others', and since when a destination drains.
// It does no I/O; one goroutine may use it.
//
// One sync is: Read (at start, and whenever the kernel may differ from what it is believed
// to hold), Want, Grow, the chains, Quiesce, Shrink. After each Op that succeeded: Done. An
// Op for which Skip reports true is left out. A sync that fails is followed by Read.
type Planner struct{}

// Limits bound the draining of destinations.
type Limits struct {
	Drain time.Duration // how long a destination drains at the most
	// NoDrain says that a destination of weight 0 may still get new connections on this
	// kernel: one that is not in the unit any more is deleted at once.
	NoDrain bool
}

// Read takes in what the kernel was found to hold. The Planner owns it from now on. The
// next plan compares everything.
func (p *Planner) Read(fresh Observed) {}

// Want takes in what the kernel is to hold. The next plan compares what the change touches.
func (p *Planner) Want(c Compiled) {}

// Grow is what is added or changed, in order: set entries, servers, destinations,
// addresses.
func (p *Planner) Grow() []Op { return nil }

// Quiesce takes new connections from the TCP destinations that are not wanted any more:
// weight 0. It comes after the chains, and before their connections are counted.
func (p *Planner) Quiesce(now time.Time, l Limits) []Op { return nil }

// Counting is the destinations whose connections Shrink wants to be told, each with the
// time since which it drains. It may be empty. The caller must not change it.
func (p *Planner) Counting() map[DestinationKey]time.Time { return nil }

// Shrink is what is deleted, in order: destinations, servers, addresses, set entries. What
// a draining destination needs stays. connections are those of Counting.
func (p *Planner) Shrink(now time.Time, l Limits, connections map[DestinationKey]int) []Op {
	return nil
}

// Done records that the kernel did an Op.
func (p *Planner) Done(op Op) {}

// Conflict records that the kernel has a server that p did not know of (EEXIST on
// AddServer): it is somebody else's. The result takes back what would make it ours.
func (p *Planner) Conflict(server ServerKey) []Op { return nil }

// Skip reports whether an Op of an earlier plan is void because of a Conflict since.
func (p *Planner) Skip(op Op) bool { return false }

// Status counts.
func (p *Planner) Status() Status { return Status{} }

// Empty reports whether nothing of ours is left in the kernel but empty sets and the link.
func (p *Planner) Empty() bool { return true }

// Has is what the kernel is believed to hold. The caller must not change it.
func (p *Planner) Has() *Observed { return nil }

// Status is what a Backend holds.
type Status struct {
	Servers      int // ours
	Destinations int // of ours
	Draining     int // of Destinations
	Conflicts    int // wanted servers that are left to somebody else
}
