package expand

import (
	"fmt"

	v1 "gridproxy/controller/api/v1"
)

// A child whose change its API forbids can be replaced, if the Grid's annotation
// on-immutable-change says so (B-15). That happens to one unit at a time, and to the next one when
// all others are ready, so that a change that does not work takes one site with it and not all. A
// unit that is offline or paused is neither replaced nor waited for.

// replacements say which child is to be replaced now.
type replacements struct {
	next    *unit
	blocker *unit // the unit that must be ready first
}

// nextReplacement returns which child is replaced now, or which unit must be ready before any
// is. Both may be nil. This looks at all units, so the result is kept.
func (a *assessment) nextReplacement() replacements {
	if a.replacing == nil {
		found := replacements{}
		if a.recreates() && !a.hold.on() && !a.limit.exceeded() { // above the limit, the child would be a new one
			found = a.findReplacement()
		}
		a.replacing = &found
	}
	return *a.replacing
}

func (a *assessment) findReplacement() replacements {
	var next *unit
	for _, u := range a.units {
		switch {
		case u.nodes == 0 && a.Grid.Kind != ServiceGrid, u.offline && !u.deleting(), a.paused(u):
		case u.isReplaceable():
			if next == nil {
				next = u
			}
		case u.deleting() || u.problem() == nil && blocksReplacements(u):
			return replacements{blocker: u}
		}
	}
	return replacements{next: next}
}

func (u *unit) isReplaceable() bool {
	refused := u.refused()
	return u.ownership == ours && !u.deleting() && u.Problem == nil && refused != nil && refused.Reason == ReasonImmutableField
}

// blocksReplacements reports whether a unit without a problem of ours is changing or stuck. It may
// be the one that was replaced last.
func blocksReplacements(u *unit) bool {
	phase, _, _ := u.phase()
	return phase != v1.UnitReady
}

// replacement returns the step that deletes the child; the next decision creates it again.
func (u *unit) replacement() Step {
	replace := Replace{
		Name: u.Name, Value: u.Value, UID: u.live.UID, ResourceVersion: u.live.ResourceVersion,
		Orphan: u.grid.Kind == StatefulSetGrid,
	}
	if !u.saysReplicas() {
		replace.Replicas = u.live.Replicas
	}
	return replace
}

// replacementRemark returns a remark on what the replacement of a refused child waits for; "" if
// it is not to be replaced, or is next.
func (a *assessment) replacementRemark(u *unit) string {
	refused := u.refused()
	if refused == nil || refused.Reason != ReasonImmutableField || !a.recreates() {
		return ""
	}
	if a.hold.on() {
		return "; it is not replaced while deletions are held"
	}
	if u.offline {
		return "; it is replaced when a Node of the unit is ready"
	}
	if blocker := a.nextReplacement().blocker; blocker != nil && blocker != u {
		return fmt.Sprintf("; it is replaced when unit %s is ready", blocker.Value)
	}
	return ""
}

func (a *assessment) recreates() bool {
	return a.Grid.Annotations[v1.AnnotationOnImmutableChange] == "Recreate"
}
