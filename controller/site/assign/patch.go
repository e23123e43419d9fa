package assign

import (
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// unitPatch is what to write to a unit; edited is what to write in addition. clean: no Node carries
// or may carry anything of it. What metrics show of it is added to summary.
func unitPatch(u *unit, edited edit, clean bool, now metav1.Time, summary *Summary) *Patch {
	p := Patch{Name: u.Name, UID: u.UID, ResourceVersion: u.ResourceVersion}
	if u.leaving() {
		if clean && removeFinalizer(edited, u.Finalizers, v1alpha2.FinalizerUnit) {
			p.News = u.report.leftBehind()
		}
		p.Main = edited.orNil()
	} else {
		addFinalizer(edited, u.Finalizers, v1alpha2.FinalizerUnit)
		p.Main = edited.orNil()
		status := u.status(now)
		p.Status = mergePatch(u.Status, status)
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

// status is the desired status of the unit. What SuperEdge's v1alpha1 wrote is left out.
func (u *unit) status(now metav1.Time) v1alpha2.NodeUnitStatus {
	s := v1alpha2.NodeUnitStatus{UnitClusterStatus: u.Status.UnitClusterStatus}
	for _, n := range u.nodes {
		if n.Ready {
			s.ReadyNodes = append(s.ReadyNodes, n.Name)
		} else {
			s.NotReadyNodes = append(s.NotReadyNodes, n.Name)
		}
	}
	s.ReadyRate = fmt.Sprintf("%d/%d", len(s.ReadyNodes), len(u.nodes))
	s.Conditions = u.report.conditions(u.Status.Conditions, u.Generation, now)
	return s
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

// groupPatch is unitPatch for a group.
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
		p.Status = mergePatch(g.Status, v1alpha2.NodeGroupStatus{
			UnitNumber: new(g.units.Len()), NodeUnits: sets.List(g.units), WorkloadStatus: g.Status.WorkloadStatus, Conditions: conditions,
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
	return !leaves.labels.HasAny(labels.UnsortedList()...) && !leaves.taints.HasAny(taints.UnsortedList()...) &&
		!leaves.annotations.HasAny(slices.Collect(maps.Keys(set.Annotations))...)
}
