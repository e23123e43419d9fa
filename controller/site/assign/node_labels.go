package assign

import (
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// findWishes fills in what the unit's Nodes get. An entry of setNode.labels that follows from the
// unit or from a group is not a wish: SuperEdge wrote such entries, and they must leave the Nodes
// with the group.
func (u *unit) findWishes(allowPrivileged bool) {
	u.labels[u.Name] = v1alpha2.UnitMark
	for _, g := range u.groups {
		u.labels[g] = u.Name
	}
	set := u.Spec.Set()
	set.Labels = maps.Clone(set.Labels)
	maps.DeleteFunc(set.Labels, func(key string, _ v1alpha2.LabelValue) bool { return u.derives(key) })
	var errs field.ErrorList
	u.wishes, errs = set.Usable()
	for _, key := range []string{v1alpha2.AnnotationTaints, v1alpha2.AnnotationKeptLabels, v1alpha2.AnnotationAllowRemoval} {
		if _, found := u.wishes.Annotations[key]; found {
			delete(u.wishes.Annotations, key)
			errs = append(errs, field.Forbidden(field.NewPath("spec", "setNode", "annotations").Key(key), "it is reserved for the controller"))
		}
	}
	for key := range u.wishes.Labels {
		if isRecord(key) {
			delete(u.wishes.Labels, key)
			errs = append(errs, field.Forbidden(field.NewPath("spec", "setNode", "labels").Key(key), "it is reserved for the controller"))
		}
	}
	for _, err := range errs {
		u.report.add(v1alpha2.ConditionInvalid, "InvalidSetNode", err.Error()+": it is left out; correct it")
	}
	u.splitPrivileged(allowPrivileged)
	if u.Spec.Unschedulable {
		u.wishes.Taints = append(u.wishes.Taints, v1alpha2.Taint{Key: v1alpha2.TaintUnschedulable, Effect: string(corev1.TaintEffectNoSchedule)})
	}
}

// splitPrivileged takes from the wishes what is privileged. Without --allow-privileged-set-node no
// Node gets it. With it, those do that could not have chosen the unit themselves: those that
// spec.nodes names, or all if the selector requires a label that no Node can give itself. On Nodes
// that have it from this unit already it stays, since its removal could move Pods.
func (u *unit) splitPrivileged(allowed bool) {
	var errs field.ErrorList
	u.wishes, u.privileged, errs = u.wishes.Privileged()
	u.trustsListed, u.trustsAll = allowed, allowed && u.Spec.Selector.RequiresPrivileged()
	remedy := ": it is set on no further Node; remove it, or run grid-controller with --allow-privileged-set-node"
	switch {
	case u.trustsAll || allowed && u.Spec.Selector.Empty():
		return
	case allowed:
		remedy = ": it is set only on the Nodes that spec.nodes names, because a Node could label itself into this selector; " +
			"name the others too, or let the selector require a label under node-restriction.kubernetes.io"
	}
	for _, err := range errs {
		u.report.add(v1alpha2.ConditionInvalid, "PrivilegedSetNode", err.Error()+remedy)
	}
}

// trusts reports whether the Node gets what is privileged.
func (u *unit) trusts(node string) bool {
	return u.trustsAll || u.trustsListed && u.lists.Has(node)
}

// derives reports whether the label key follows from the unit, or from a group that holds it or
// held it until now.
func (u *unit) derives(key string) bool {
	return key == u.Name || u.Labels[key] == v1alpha2.GroupMark || slices.Contains(u.groups, key)
}

// sortedKeys are the keys of what a unit asks of each of its Nodes: labels that follow from it, and
// those of setNode.
type sortedKeys struct{ derived, labels, privileged, annotations []string }

// request is what one unit asks of one Node under one key.
type request struct {
	value string
	unit  *unit
	// wish: it comes from setNode, and does not overwrite another program's value.
	wish bool
	// frozen: it is set on no further Node, and stays with the value that it has where it is ours.
	frozen bool
	// untrusted: it is frozen because the Node could have chosen the unit itself.
	untrusted bool
	// converts: what an earlier release has set of it without a record gets one.
	converts bool
}

// nodeRequests are what a Node gets. If several units ask for different values, the first unit by
// name wins.
type nodeRequests struct{ labels, annotations, taints map[string]request }

// collectRequests collects what units, sorted by name, ask of each Node, and reports conflicts to
// them.
func collectRequests(units []*unit, groups map[string]*group) map[string]*nodeRequests {
	all := map[string]*nodeRequests{}
	for _, u := range units {
		u.sorted = sortedKeys{
			derived:     slices.Sorted(maps.Keys(u.labels)),
			labels:      slices.Sorted(maps.Keys(u.wishes.Labels)),
			privileged:  slices.Sorted(maps.Keys(u.privileged.Labels)),
			annotations: slices.Sorted(maps.Keys(u.wishes.Annotations)),
		}
		for _, n := range u.nodes {
			c := all[n.Name]
			if c == nil {
				c = &nodeRequests{}
				all[n.Name] = c
			}
			c.gather(n.Name, u, groups)
		}
	}
	return all
}

// gather adds what a unit asks of a Node. It is frozen until the finalizers of the unit and of the
// group can be seen: without them an object can go at any time, and nothing shows that its labels
// are on Nodes.
func (c *nodeRequests) gather(node string, u *unit, groups map[string]*group) {
	frozen := !slices.Contains(u.Finalizers, v1alpha2.FinalizerUnit)
	for _, key := range u.sorted.derived {
		g := groups[key]
		mine := request{value: u.labels[key], unit: u, frozen: frozen || g != nil && !slices.Contains(g.Finalizers, v1alpha2.FinalizerGroup)}
		if before, lost := put(&c.labels, key, mine); lost {
			disagree(node, "label "+key, before, mine)
			// S-07: a Node in two units of one group is the group's affair too.
			if g != nil && g.units.Has(before.unit.Name) {
				g.conflict("the Node %s is in the NodeUnits %s and %s; it gets %s=%s: remove it from one", node, before.unit.Name, u.Name, key, before.value)
			}
		}
	}
	wish := func(into *map[string]request, what, key, value string, untrusted bool) {
		mine := request{value: value, unit: u, wish: true, frozen: frozen || untrusted, untrusted: untrusted, converts: u.converts()}
		if before, lost := put(into, key, mine); lost && !untrusted {
			disagree(node, what+key, before, mine)
		}
	}
	// What cannot be read selects Nodes by a mark that they can put on themselves.
	unread, untrusted := u.keepsMembers && !u.lists.Has(node), !u.trusts(node)
	for _, key := range u.sorted.labels {
		wish(&c.labels, "label ", key, string(u.wishes.Labels[key]), unread && restricted(key))
	}
	for _, key := range u.sorted.privileged {
		wish(&c.labels, "label ", key, string(u.privileged.Labels[key]), untrusted)
	}
	for _, key := range u.sorted.annotations {
		wish(&c.annotations, "annotation ", key, u.wishes.Annotations[key], false)
	}
	for _, t := range u.wishes.Taints {
		wish(&c.taints, "taint ", pairOf(t), t.Value, unread)
	}
	for _, t := range u.privileged.Taints {
		wish(&c.taints, "taint ", pairOf(t), t.Value, untrusted)
	}
}

// put adds a request. lost reports whether another unit has added a different one, before,
// which stays. A request of a unit that the Node could have chosen itself gives way to one of a
// unit that it could not.
func put(into *map[string]request, key string, mine request) (before request, lost bool) {
	before, taken := (*into)[key]
	if !taken {
		if *into == nil {
			*into = map[string]request{}
		}
		(*into)[key] = mine
		return request{}, false
	}
	if before.untrusted && !mine.untrusted {
		(*into)[key] = mine
		return before, false
	}
	if before.value == mine.value {
		before.wish, before.frozen, before.converts = before.wish && mine.wish, before.frozen && mine.frozen, before.converts || mine.converts
		(*into)[key] = before
	}
	return before, before.value != mine.value
}

func disagree(node, what string, first, second request) {
	say := "on Node %s the NodeUnits %s and %s ask for different values of the %s, %q and %q; the first one wins: change one of them, or remove the Node from one"
	message := fmt.Sprintf(say, node, first.unit.Name, second.unit.Name, what, first.value, second.value)
	first.unit.report.add(v1alpha2.ConditionConflict, "Conflict", message)
	second.unit.report.add(v1alpha2.ConditionConflict, "Conflict", message)
}

// reportForeignValue reports that another program has set another value than the unit wants.
func (c request) reportForeignValue(node, what, value string) {
	c.unit.report.add(v1alpha2.ConditionConflict, "Conflict", fmt.Sprintf(
		"the Node %s has the %s with the value %q, which no NodeUnit has set, and keeps it; this unit asks for %q: change one of them", node, what, value, c.value))
}
