package assign

import (
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// An edit of a unit's spec that takes more than half of its Nodes out is more likely a mistake than
// a move. Then labels in use stay as if the unit were gone (decision 34). That the edit does so is
// written to the unit's status before any Node is, since afterwards fewer Nodes show it.

// findEdited fills in former, taken and mostTaken of units, if an edit takes labels from Nodes.
func (d *decision) findEdited() {
	if !slices.ContainsFunc(d.units, (*unit).isEdited) {
		return
	}
	for _, n := range d.nodes {
		for key, value := range n.Labels {
			if u := d.unitByName[key]; u != nil && value == v1alpha2.UnitMark && u.isEdited() && !n.isKept(key) {
				u.former = append(u.former, n)
			}
		}
	}
	for _, u := range d.units {
		u.taken = sets.New[string]()
		for _, n := range u.former {
			if !u.holds(n) {
				u.taken.Insert(n.Name)
			}
		}
		u.mostTaken = u.Status.MostTaken
		if 2*u.taken.Len() > len(u.former) {
			u.mostTaken = u.Generation
		}
	}
}

// isEdited reports whether Nodes may carry what an earlier spec of the unit asked for. A unit that
// has never been settled is new.
func (u *unit) isEdited() bool {
	return !u.leaving() && u.Status.SettledGeneration > 0 && u.Generation > u.Status.SettledGeneration
}

// takesMost reports whether an edit takes the Node out of the unit together with most others.
func (u *unit) takesMost(node string) bool { return u.mostTaken == u.Generation && u.taken.Has(node) }

// waits reports whether the Node is not written to yet, because the status of a unit must say first
// that an edit takes most of its Nodes.
func (d *decision) waits(n *Node) bool {
	return slices.ContainsFunc(d.units, func(u *unit) bool { return u.takesMost(n.Name) && u.Status.MostTaken != u.Generation })
}

// isEditedAway reports whether an edit of a unit's spec takes a label of setNode from the Node:
// with the unit, together with most Nodes, or because its entry is gone. Then the Node is still in
// the edited unit, and has left no other one.
func (i inUse) isEditedAway(key, value string, n *Node) bool {
	taken, edited, left := false, false, false
	for mark, is := range n.Labels {
		u := i.units[mark]
		if u == nil || is != v1alpha2.UnitMark || u.leaving() || n.isKept(mark) {
			continue
		}
		switch {
		case u.takesMost(n.Name):
			taken = taken || string(u.wishes.Labels[key]) == value || string(u.privileged.Labels[key]) == value
		case !u.holds(n):
			left = true
		case u.isEdited():
			edited = true
		}
	}
	return taken || edited && !left
}

// settledGeneration returns the last generation of the spec for which no Node waits for its labels
// to be removed, or to be recorded as kept.
func (d *decision) settledGeneration(u *unit) int64 {
	waits := func(n *Node) bool { return d.written.Has(n.Name) }
	if u.isEdited() && (d.stale || slices.ContainsFunc(u.former, waits)) {
		return u.Status.SettledGeneration
	}
	return u.Generation
}
