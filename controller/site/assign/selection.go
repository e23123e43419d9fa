package assign

import (
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// selection decides which of some entangled units select a Node. Their selectors read what others
// have set on the Node and what it gets from the units that hold it, but not what it still carries
// of units that do not. Otherwise units that select by what other units set could add and remove a
// Node without end.
type selection struct {
	node    *Node
	keeps   map[string]string // labels that the Node keeps unless a unit asks for the key
	members []*unit           // sorted by name
	chosen  map[*unit]bool    // members by their selectors, which must match to the end
	labels  map[string]string
	notes   map[string]string // annotations
}

// selects returns the units that hold a Node: the given members, and the entangled units that
// join them, one after the other. A unit does not join, and that is reported, if what it sets
// would stop a selector that has matched from matching. Both parameters and the result are
// sorted by name.
func selects(n *Node, keeps map[string]string, given, entangled []*unit) []*unit {
	s := &selection{node: n, keeps: keeps, members: given, chosen: map[*unit]bool{}}
	s.labels, s.notes = s.carries(s.members)
	rejected := map[*unit]bool{}
	for again := true; again; {
		again = false
		for _, u := range entangled {
			if slices.Contains(s.members, u) || rejected[u] || !u.matches(s.labels, s.notes) {
				continue
			}
			if by := s.join(u); by == nil {
				again = true
			} else {
				rejected[u] = true
				u.reportUnstable(n, by)
			}
		}
	}
	return s.members
}

// join adds a unit and returns nil. If a selector would not match any more, the unit does not
// join, and join returns that selector's unit.
func (s *selection) join(u *unit) (by *unit) {
	members := append(slices.Clone(s.members), u)
	slices.SortFunc(members, byName)
	labels, notes := s.carries(members)
	for _, m := range members {
		if (m == u || s.chosen[m]) && !m.matches(labels, notes) {
			return m
		}
	}
	s.members, s.labels, s.notes, s.chosen[u] = members, labels, notes, true
	return nil
}

// carries returns what the Node has while these units hold it. If several ask for one key, the
// first wins, and a wish does not overwrite what others have set.
func (s *selection) carries(members []*unit) (labels, notes map[string]string) {
	asked := nodeRequests{}
	for _, u := range members {
		for key, value := range u.labels {
			put(&asked.labels, key, request{value: value, unit: u})
		}
		for key, value := range u.wishes.Labels {
			put(&asked.labels, key, request{value: string(value), unit: u, wish: true})
		}
		for key, value := range u.wishes.Annotations {
			put(&asked.annotations, key, request{value: value, unit: u, wish: true})
		}
	}
	n := s.node
	for _, u := range members {
		for key, value := range u.privileged.Labels {
			has, carried := n.Labels[key]
			switch {
			case u.trusts(n.Name):
				put(&asked.labels, key, request{value: string(value), unit: u, wish: true})
			case carried:
				put(&asked.labels, key, request{value: has, unit: u, wish: true, untrusted: true})
			}
		}
	}
	labels = with(n.Labels, n.ours(), asked.labels)
	for key, value := range s.keeps {
		if _, taken := labels[key]; !taken {
			labels[key] = value
		}
	}
	return labels, with(n.Annotations, n.Owned.Annotations.Difference(n.Foreign.Annotations), asked.annotations)
}

// with returns what a Node has, without what is ours alone, and with what is requested.
func with(has map[string]string, ours sets.Set[string], requested map[string]request) map[string]string {
	out := map[string]string{}
	for key, value := range has {
		if !ours.Has(key) {
			out[key] = value
		}
	}
	for key, c := range requested {
		if _, taken := out[key]; !taken || !c.wish {
			out[key] = c.value
		}
	}
	return out
}

// reportUnstable reports that a unit does not get a Node that it selects.
func (u *unit) reportUnstable(n *Node, by *unit) {
	message := fmt.Sprintf("the NodeUnit %s selects the Node %s, but what it sets there would stop the selector of %s from matching, "+
		"so the two would add and remove the Node forever; %s does not get it: change one of the selectors", u.Name, n.Name, by.Name, u.Name)
	u.report.add(v1alpha2.ConditionConflict, "Conflict", message)
	if by != u {
		by.report.add(v1alpha2.ConditionConflict, "Conflict", message)
	}
}

// entangle returns the units whose selectors read what units set, and marks them as such.
func entangle(units []*unit) (entangled []*unit) {
	labels, notes := sets.New[string](), sets.New[string]()
	for _, u := range units {
		if !u.leaving() {
			labels.Insert(slices.Collect(maps.Keys(u.labels))...)
			labels.Insert(slices.Collect(maps.Keys(u.wishes.Labels))...)
			labels.Insert(slices.Collect(maps.Keys(u.privileged.Labels))...)
			notes.Insert(slices.Collect(maps.Keys(u.wishes.Annotations))...)
		}
	}
	for _, u := range units {
		if s := u.selector; u.matches != nil && !u.keepsMembers && (labels.HasAny(labelKeys(s)...) || notes.HasAny(slices.Collect(maps.Keys(s.Annotations))...)) {
			u.entangled = true
			entangled = append(entangled, u)
		}
	}
	return entangled
}

func labelKeys(s *v1alpha2.Selector) []string {
	keys := slices.Collect(maps.Keys(s.MatchLabels))
	for _, r := range s.MatchExpressions {
		keys = append(keys, r.Key)
	}
	return keys
}
