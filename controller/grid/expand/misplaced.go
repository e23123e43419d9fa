package expand

import (
	"time"

	v1 "gridproxy/controller/api/v1"
)

// evictions returns the evictions of Pods that have run outside their unit, which has Nodes, for
// as long as a child may outlive its unit. next is when the next Pod is due, zero for never. The
// Pods of a frozen or lost child stay: evicted Pods would have no place, or would return to the
// same Node.
func (a *assessment) evictions(u *unit) (steps []Step, next time.Time) {
	if len(u.pods) == 0 || u.Problem != nil || u.deleting() || !a.evicts(u) {
		return nil, time.Time{}
	}
	after, never := a.graceOf(u, false)
	if never != "" {
		return nil, time.Time{}
	}
	for _, p := range u.pods {
		switch due := p.Since.Add(after); {
		case p.Since.IsZero(): // its grace does not run
		case a.Now.Before(due):
			next = sooner(next, due)
		default:
			steps = append(steps, Evict{Pod: p})
		}
	}
	return steps, next
}

// WithGraces returns the misplaced Pods with Since as it counts now: zero while the Pod's unit has
// no Node, and Now once it has one again. The Nodes of a returning unit get their labels one after
// the other, so a Pod on the second Node counts as misplaced only since the unit is back.
func (o Observed) WithGraces(pods []Pod) []Pod {
	lost := map[string]bool{} // by the child's name
	for _, c := range o.Children {
		lost[c.Name] = len(o.Units[ValueOf(o.Grid, c)]) == 0
	}
	graces := make([]Pod, len(pods))
	for i, p := range pods {
		switch {
		case lost[p.Child]:
			p.Since = time.Time{}
		case p.Since.IsZero():
			p.Since = o.Now
		}
		graces[i] = p
	}
	return graces
}

// evicts reports whether a unit's misplaced Pods are evicted at all. Every value of the annotation
// but Evict means Keep, so that a mistyped one evicts nothing. A Pod with a volume may find no
// other place. If the child does not select the unit's Nodes yet, its Pods would return to the same
// Node.
func (a *assessment) evicts(u *unit) bool {
	switch a.Grid.Annotations[v1.AnnotationMisplacedPods] {
	case "", "Evict":
		return !u.live.Volumes && u.live.NodeSelector.Get(a.Grid.Key) == u.Value
	default:
		return false
	}
}

// sooner returns the earlier of two times. Zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
