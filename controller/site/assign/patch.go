package assign

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// unitPatch returns what to write to a unit, nil if nothing is to be written; edited is what to
// write in addition. clean: no Node carries or may carry anything of it. What metrics show of it
// is added to summary.
func unitPatch(u *unit, edited edit, clean bool, now metav1.Time, summary *Summary) *Patch {
	p := Patch{Name: u.Name, UID: u.UID, ResourceVersion: u.ResourceVersion}
	if u.leaving() {
		if clean && removeFinalizer(edited, u.Finalizers, v1alpha2.FinalizerUnit) {
			p.News = u.report.leftBehind()
		}
		p.Main = edited.orNil()
	} else {
		// A unit with our finalizer and without the mark is one of an earlier release.
		if u.Status.RestrictedRecorded {
			addFinalizer(edited, u.Finalizers, v1alpha2.FinalizerUnit)
		}
		p.Main = edited.orNil()
		status := u.status(now)
		if !reflect.DeepEqual(u.Status, status) {
			p.Status = mergePatch(u.Status, status)
		}
		p.News = addedConditions(u.Status.Conditions, status.Conditions)
		summary.unit(u, status)
	}
	if p.Main == nil && p.Status == nil {
		return nil
	}
	return &p
}

// followGroups updates the labels that say which groups hold the unit. When the unit leaves a
// group, the entry of setNode.labels that says the same is removed too, because without the group
// it would be a wish. Both wait until the Nodes are settled.
func (u *unit) followGroups(e edit, settled func(key string) bool) {
	for _, g := range u.groups {
		if u.Labels[g] != v1alpha2.GroupMark {
			e.label(g, v1alpha2.GroupMark)
		}
	}
	for key, value := range u.Labels {
		if value != v1alpha2.GroupMark || slices.Contains(u.groups, key) || !settled(key) {
			continue
		}
		e.label(key, nil)
		for spelling, set := range map[string]*v1alpha2.SetNode{"setNode": u.Spec.SetNode, "setnode": u.Spec.SetNodeOld} {
			if set != nil && string(set.Labels[key]) == u.Name {
				e.set(nil, "spec", spelling, "labels", key)
			}
		}
	}
}

// status returns the desired status of the unit, without what SuperEdge's v1alpha1 wrote.
func (u *unit) status(now metav1.Time) v1alpha2.NodeUnitStatus {
	var ready, notReady []string
	for _, n := range u.nodes {
		if n.Ready {
			ready = append(ready, n.Name)
		} else {
			notReady = append(notReady, n.Name)
		}
	}
	s := v1alpha2.NodeUnitStatus{UnitClusterStatus: u.Status.UnitClusterStatus, ReadyRate: fmt.Sprintf("%d/%d", len(ready), len(u.nodes))}
	s.ReadyNodes, s.MoreReadyNodes = firstNames(ready)
	s.NotReadyNodes, s.MoreNotReadyNodes = firstNames(notReady)
	s.Conditions = u.report.conditions(u.Status.Conditions, u.Generation, now)
	s.RestrictedRecorded, s.SettledGeneration = u.recorded, u.settled
	if s.SettledGeneration != u.Generation {
		s.MostTaken = u.mostTaken
	}
	return s
}

// firstNames returns the first names that a status may list, and how many more there are.
func firstNames(names []string) (shown []string, more int) {
	size := 0
	for i, name := range names {
		if size += len(name); i == namesMax || size > nameBytesMax {
			return names[:i], len(names) - i
		}
	}
	return names, 0
}

// adopt makes a unit that groups have found belong to every group that wants it now, so that
// garbage collection removes it after the last of them.
func (u *unit) adopt(g *group, e edit) {
	isGroup := func(o metav1.OwnerReference) bool { return o.Kind == kindGroup }
	if u.leaving() || !slices.ContainsFunc(u.owners, isGroup) || slices.Contains(u.owners, g.owner()) {
		return
	}
	u.owners = append(u.owners, g.owner())
	e.set(u.owners, "metadata", "ownerReferences")
}

// groupPatch returns what to write to a group, as unitPatch does for a unit.
func groupPatch(g *group, clean bool, now metav1.Time, summary *Summary) *Patch {
	p := Patch{Name: g.Name, UID: g.UID, ResourceVersion: g.ResourceVersion}
	e := edit{}
	if g.leaving() {
		if clean && removeFinalizer(e, g.Finalizers, v1alpha2.FinalizerGroup) {
			p.News = g.report.leftBehind()
		}
	} else {
		addFinalizer(e, g.Finalizers, v1alpha2.FinalizerGroup)
		conditions := g.report.conditions(g.Status.Conditions, g.Generation, now)
		names, _ := firstNames(sets.List(g.units)) // unitNumber says how many there are
		p.Status = mergePatch(g.Status, v1alpha2.NodeGroupStatus{
			UnitNumber: new(g.units.Len()), NodeUnits: names, WorkloadStatus: g.Status.WorkloadStatus, Conditions: conditions,
			Removals: g.removals,
		})
		p.News = addedConditions(g.Status.Conditions, conditions)
		summary.wrong(kindGroup, g.Name, conditions)
	}
	p.Main = e.orNil()
	if p.Main == nil && p.Status == nil {
		return nil
	}
	return &p
}

func addFinalizer(e edit, has []string, name string) {
	if !slices.Contains(has, name) {
		e.set(append(slices.Clone(has), name), "metadata", "finalizers")
	}
}

func removeFinalizer(e edit, has []string, name string) (removed bool) {
	rest := slices.DeleteFunc(slices.Clone(has), func(f string) bool { return f == name })
	if removed = len(rest) < len(has); removed {
		e.set(rest, "metadata", "finalizers")
	}
	return removed
}

// clean reports whether none of the keys that the unit has put on Nodes is still being removed from
// one.
func (u *unit) clean(leaves gone) bool {
	labels := sets.New(u.Name)
	for key, value := range u.Labels {
		if value == v1alpha2.GroupMark {
			labels.Insert(key)
		}
	}
	set := u.Spec.Set()
	labels.Insert(slices.Collect(maps.Keys(set.Labels))...)
	taints := sets.New(pairOf(v1alpha2.Taint{Key: v1alpha2.TaintUnschedulable, Effect: "NoSchedule"}))
	for _, t := range set.Taints {
		taints.Insert(pairOf(t))
	}
	for thing := range set.Labels {
		labels.Insert(recordOf(thing))
	}
	for pair := range taints {
		labels.Insert(recordOf(pair))
	}
	return !leaves.labels.HasAny(labels.UnsortedList()...) && !leaves.taints.HasAny(taints.UnsortedList()...) &&
		!leaves.annotations.HasAny(slices.Collect(maps.Keys(set.Annotations))...)
}
