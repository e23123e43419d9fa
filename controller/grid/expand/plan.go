package expand

import (
	"time"

	"gridproxy/controller/flips"

	"k8s.io/apimachinery/pkg/types"
)

// Plan is what to do for one Grid now. Steps depend on each other only by their order:
// losses are written down first, because what is created then must be newer; what adds comes before
// what removes; and a Spend comes before the deletions that it is about.
type Plan struct {
	// Look are wanted names that must be read live before anything is applied to them. If there are
	// any, Steps is what can be done without knowing them.
	Look  []string
	Steps []Step
	// Recheck is when to decide again though nothing has changed; 0: not needed.
	Recheck time.Duration
	// Flips is the next Observed.Flips, and Refused are the Nodes to report for it.
	Flips   flips.Log
	Refused []flips.Refusal
	// Blocked has the children of units with Nodes whose refusal is in Observed.Applied. The value
	// is true if only the refusal keeps the child from being applied.
	Blocked map[string]bool
}

// Step is one of Apply, MarkLost, MarkFound, Spend, Delete, Release, Replace, Prune, Evict.
type Step interface{ word() string }

// Word returns the word for a kind of step, as metrics have it.
func Word(s Step) string { return s.word() }

type (
	// Apply makes a child what it should be, by server-side apply.
	Apply struct {
		Child       Child
		Fingerprint string // of Child, for Applied.Desired
		// UID is the existing child's, to be set as metadata.uid, so that a child that was created
		// in the meantime is not taken; "" if the name is free.
		UID types.UID
		// Adopt: the child has no controller. The Grid is read live first, and must be the same and
		// not be deleted.
		Adopt bool
		// TakeOver are field managers from before this controller: what they own of the child
		// becomes ours first, so that what the Grid does not ask for can go.
		TakeOver []string
		// TemplateHash is SuperEdge's label in the Pod template of the child, "" without it. It is
		// not part of the desired child, and is removed with the first other change of that
		// template. Until then it is kept, because its removal would be a change too. See
		// WithTemplateHash.
		TemplateHash string
		// HandOver: the live replicas are handed to another field manager first, since this apply
		// leaves them out.
		HandOver *int32
		// Repair: the same was applied before. It is to be recorded in Observed.Repairs.
		Repair bool
		// Contested: the repair begins a contest with another client or belongs to one, so who that
		// is must be found out first. See Rivals.
		Contested bool
	}
	// MarkLost writes unit-lost-at on a child by merge patch.
	MarkLost struct {
		Name, Value string
		UID         types.UID
		At          time.Time
	}
	// MarkFound removes unit-lost-at.
	MarkFound struct {
		Name, Value string
		UID         types.UID
	}
	// Spend writes into status.removals how many of the following Deletes need a place in the
	// removal budget. If it fails, these are not executed: a controller that ends afterwards has
	// spent too much, never too little.
	Spend struct{ Count int }
	// Delete removes the child of a unit that has gone: background propagation, both preconditions,
	// after a live read of the Grid has shown it unchanged, and live LISTs of Nodes with the value
	// have come back empty: by the Grid's key, and by each label of Others. Released: a person
	// has allowed it by name. Unserved: no Pod of the child has ever been ready.
	Delete struct {
		Name, Value     string
		UID             types.UID
		ResourceVersion string
		Others          map[string]string
		Released        bool
		Unserved        bool
	}
	// Release gives up a child that is no longer ours to manage: its owner reference to the Grid
	// goes, nothing else.
	Release struct {
		Name            string
		UID             types.UID
		ResourceVersion string
	}
	// Replace deletes a child whose change its API forbids; the next decision creates it again.
	// Orphan leaves its Pods. Replicas must be in Observed.Kept until that is done, nil if the
	// template has its own: otherwise the new child would start with 1 and remove the Pods that
	// were left.
	Replace struct {
		Name, Value     string
		UID             types.UID
		ResourceVersion string
		Orphan          bool
		Replicas        *int32
	}
	// Prune removes entries of templatePool by one JSON patch that tests what it removes.
	Prune struct{ Names []string }
	// Evict asks for the eviction of a misplaced Pod.
	Evict struct{ Pod Pod }
)

// NeedsPlace reports whether the deletion counts against the removal budget.
func (d Delete) NeedsPlace() bool { return !d.Released && !d.Unserved }

func (Apply) word() string     { return "apply" }
func (MarkLost) word() string  { return "mark_lost" }
func (MarkFound) word() string { return "mark_found" }
func (Spend) word() string     { return "spend" }
func (Delete) word() string    { return "delete" }
func (Release) word() string   { return "release" }
func (Replace) word() string   { return "replace" }
func (Prune) word() string     { return "prune" }
func (Evict) word() string     { return "evict" }
