package expand

import (
	"time"

	v1 "gridproxy/controller/api/v1"
)

// evictions are the Pods of a unit with Nodes that have stood outside it for as long as a child may outlive its unit, and
// when the next one will have, zero for never. The Pods of a frozen child, a lost one's too, stay: evicted Pods would
// have nowhere to go, or would come back where they were.
func (a *assessment) evictions(u *unit) (steps []Step, next time.Time) {
	if len(u.pods) == 0 || u.Problem != nil || u.deleting() || !a.evicts(u) {
		return nil, time.Time{}
	}
	after, never := a.graceOf(u, false)
	if never != "" {
		return nil, time.Time{}
	}
	for _, p := range u.pods {
		if due := p.Since.Add(after); a.Now.Before(due) {
			next = sooner(next, due)
		} else {
			steps = append(steps, Evict{Pod: p})
		}
	}
	return steps, next
}

// evicts reports whether a unit's misplaced Pods are evicted at all. Any word in the annotation but its opposite means
// Keep, so that a mistyped one evicts nothing; a Pod with a volume may find no other place for it. A child that does not
// ask for the unit's Nodes yet would have its Pods back where they were.
func (a *assessment) evicts(u *unit) bool {
	switch a.Grid.Annotations[v1.AnnotationMisplacedPods] {
	case "", "Evict":
		return !u.live.Volumes && u.live.NodeSelector[a.Grid.Key] == u.Value
	default:
		return false
	}
}

// sooner is the first of two times, of which zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
