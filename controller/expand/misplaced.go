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
// no Node, and Now when it has one again. The Nodes of a unit that comes back get their labels one
// after the other, and a Pod on the second is not misplaced for longer than the unit is back.
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
