package assign

import (
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"
)

// claim is what one unit asks of one Node under one key.
type claim struct {
	value string
	unit  *unit
	// wish: it comes from setNode; somebody else's other value is not overwritten.
	wish bool
}

// claims are what a Node gets: of several units that ask for different values, the first by name has its way.
type claims struct{ labels, annotations, taints map[string]claim }

func newClaims() *claims {
	return &claims{labels: map[string]claim{}, annotations: map[string]claim{}, taints: map[string]claim{}}
}

// claimAll gathers what units, sorted by name, ask of each Node, and tells those that disagree.
func claimAll(units []*unit, groups map[string]*group) map[string]*claims {
	all := map[string]*claims{}
	for _, u := range units {
		for _, n := range u.nodes {
			c := all[n.Name]
			if c == nil {
				c = newClaims()
				all[n.Name] = c
			}
			c.gather(n.Name, u, groups)
		}
	}
	return all
}

func (c *claims) gather(node string, u *unit, groups map[string]*group) {
	for _, key := range slices.Sorted(maps.Keys(u.labels)) {
		if before, lost := put(c.labels, key, claim{value: u.labels[key], unit: u}); lost {
			disagree(node, "label "+key, before, claim{value: u.labels[key], unit: u})
			// S-07: a Node in two units of one group is the group's affair too.
			if g := groups[key]; g != nil && g.units.Has(before.unit.Name) {
				g.conflict("the Node %s is in the NodeUnits %s and %s; it gets %s=%s: take it out of one", node, before.unit.Name, u.Name, key, before.value)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(u.wishes.Labels)) {
		mine := claim{value: string(u.wishes.Labels[key]), unit: u, wish: true}
		if before, lost := put(c.labels, key, mine); lost {
			disagree(node, "label "+key, before, mine)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(u.wishes.Annotations)) {
		mine := claim{value: u.wishes.Annotations[key], unit: u, wish: true}
		if before, lost := put(c.annotations, key, mine); lost {
			disagree(node, "annotation "+key, before, mine)
		}
	}
	for _, t := range u.wishes.Taints {
		mine := claim{value: t.Value, unit: u, wish: true}
		if before, lost := put(c.taints, pairOf(t), mine); lost {
			disagree(node, "taint "+pairOf(t), before, mine)
		}
	}
}

// put enters a claim; lost: another unit has entered a different one before.
func put(into map[string]claim, key string, mine claim) (before claim, lost bool) {
	before, taken := into[key]
	if !taken {
		into[key] = mine
		return claim{}, false
	}
	if before.value == mine.value && !mine.wish {
		before.wish = false
		into[key] = before
	}
	return before, before.value != mine.value
}

func disagree(node, what string, first, second claim) {
	say := "on Node %s the NodeUnits %s and %s ask for different values of the %s, %q and %q; the first has its way: change one of them, or take the Node out of one"
	message := fmt.Sprintf(say, node, first.unit.Name, second.unit.Name, what, first.value, second.value)
	first.unit.report.add(v1alpha2.ConditionConflict, "Conflict", message)
	second.unit.report.add(v1alpha2.ConditionConflict, "Conflict", message)
}

// yield reports a wish that somebody who is no unit has set otherwise.
func (c claim) yield(node, what, value string) {
	c.unit.report.add(v1alpha2.ConditionConflict, "Conflict", fmt.Sprintf(
		"the Node %s has the %s with the value %q, which no NodeUnit has set, and keeps it; this unit asks for %q: change one of them", node, what, value, c.value))
}
