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
	for _, err := range errs {
		u.report.add(v1alpha2.ConditionInvalid, "InvalidSetNode", err.Error()+": it is left out; correct it")
	}
	if !allowPrivileged {
		u.refusePrivileged()
	}
	if u.Spec.Unschedulable {
		u.wishes.Taints = append(u.wishes.Taints, v1alpha2.Taint{Key: v1alpha2.TaintUnschedulable, Effect: string(corev1.TaintEffectNoSchedule)})
	}
}

// refusePrivileged takes from the wishes what only --allow-privileged-set-node allows. On Nodes
// that have it from this unit already it stays, since its removal could move Pods.
func (u *unit) refusePrivileged() {
	var errs field.ErrorList
	u.wishes, u.refused, errs = u.wishes.Privileged()
	for _, err := range errs {
		u.report.add(v1alpha2.ConditionInvalid, "PrivilegedSetNode", err.Error()+
			": it is set on no further Node; remove it, or run grid-controller with --allow-privileged-set-node")
	}
}

// derives: the label key follows from the unit or from a group that holds it, or held it until now.
func (u *unit) derives(key string) bool {
	return key == u.Name || u.Labels[key] == v1alpha2.GroupMark || slices.Contains(u.groups, key)
}

// sortedKeys are the keys of what a unit asks of each of its Nodes: labels that follow from it, and
// those of setNode.
type sortedKeys struct{ derived, labels, annotations []string }

// request is what one unit asks of one Node under one key.
type request struct {
	value string
	unit  *unit
	// wish: it comes from setNode, and does not overwrite another program's value.
	wish bool
	// frozen: it is set on no further Node, and stays with the value that it has where it is ours.
	frozen bool
}

// nodeRequests are what a Node gets. If several units ask for different values, the first unit by
// name wins.
type nodeRequests struct{ labels, annotations, taints map[string]request }

func newNodeRequests() *nodeRequests { return &nodeRequests{} }

// collectRequests collects what units, sorted by name, ask of each Node, and reports conflicts to
// them.
func collectRequests(units []*unit, groups map[string]*group) map[string]*nodeRequests {
	all := map[string]*nodeRequests{}
	for _, u := range units {
		u.sorted = sortedKeys{
			derived:     slices.Sorted(maps.Keys(u.labels)),
			labels:      slices.Sorted(maps.Keys(u.wishes.Labels)),
			annotations: slices.Sorted(maps.Keys(u.wishes.Annotations)),
		}
		for _, n := range u.nodes {
			c := all[n.Name]
			if c == nil {
				c = newNodeRequests()
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
	for _, key := range u.sorted.labels {
		mine := request{value: string(u.wishes.Labels[key]), unit: u, wish: true, frozen: frozen}
		if before, lost := put(&c.labels, key, mine); lost {
			disagree(node, "label "+key, before, mine)
		}
	}
	for _, key := range u.sorted.annotations {
		mine := request{value: u.wishes.Annotations[key], unit: u, wish: true, frozen: frozen}
		if before, lost := put(&c.annotations, key, mine); lost {
			disagree(node, "annotation "+key, before, mine)
		}
	}
	for _, t := range u.wishes.Taints {
		mine := request{value: t.Value, unit: u, wish: true, frozen: frozen}
		if before, lost := put(&c.taints, pairOf(t), mine); lost {
			disagree(node, "taint "+pairOf(t), before, mine)
		}
	}
	for key, value := range u.refused.Labels {
		put(&c.labels, key, request{value: string(value), unit: u, wish: true, frozen: true})
	}
	for _, t := range u.refused.Taints {
		put(&c.taints, pairOf(t), request{value: t.Value, unit: u, wish: true, frozen: true})
	}
}

// put adds a request. lost: another unit has added a different one before.
func put(into *map[string]request, key string, mine request) (before request, lost bool) {
	before, taken := (*into)[key]
	if !taken {
		if *into == nil {
			*into = map[string]request{}
		}
		(*into)[key] = mine
		return request{}, false
	}
	if before.value == mine.value {
		before.wish, before.frozen = before.wish && mine.wish, before.frozen && mine.frozen
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
