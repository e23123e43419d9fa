package assign

import (
	"fmt"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// group is a NodeGroup with what follows from the observed state.
type group struct {
	*v1alpha2.NodeGroup
	keys   []string // autoFindNodeKeys, sorted, without repetitions
	units  sets.Set[string]
	report report
	// removals are the rows for the group's status.
	removals []v1alpha2.Removal
}

func (g *group) leaving() bool { return g.DeletionTimestamp != nil }

// readGroup takes what can be used from a NodeGroup and reports the rest.
func readGroup(object *v1alpha2.NodeGroup) *group {
	g := &group{NodeGroup: object, units: sets.New[string]()}
	if err := v1alpha2.ValidateName(g.Name); err != nil {
		g.report.add(v1alpha2.ConditionInvalid, "InvalidName", err.Error()+": the group holds no units; create it again with a shorter name")
	}
	if len(g.Spec.Workload) > 0 {
		g.report.add(v1alpha2.ConditionNotImplemented, "Workload", "spec.workload is stored and has no effect: bind workloads by the gridUniqKey of a Grid")
	}
	g.keys = slices.Compact(slices.Sorted(slices.Values(g.Spec.FindKeys())))
	return g
}

// findUnits fills in the existing units that the group lists, selects or has found, and adds the
// group to them.
func (g *group) findUnits(units []*unit, find map[string]found) {
	if g.leaving() || v1alpha2.ValidateName(g.Name) != nil {
		return
	}
	listed := sets.New(g.Spec.Units()...)
	matches, err := g.Spec.Selector.Compile()
	if err != nil {
		g.report.add(v1alpha2.ConditionInvalid, "InvalidSelector", err.Error()+": the group keeps the units that it has; correct the selector")
	}
	for _, u := range units {
		if u.Name == g.Name {
			g.conflict("the NodeUnit %s has the group's name, so that one label key of Nodes would have two meanings; rename one", u.Name)
			u.report.add(v1alpha2.ConditionConflict, "Conflict",
				fmt.Sprintf("the NodeGroup %s has the unit's name, so that one label key of Nodes would have two meanings; rename one", g.Name))
		}
		if u.leaving() {
			listed.Delete(u.Name)
			continue
		}
		isListed := listed.Has(u.Name)
		listed.Delete(u.Name)
		isSelected := err == nil && matches(u.bare, u.Annotations) || err != nil && u.Labels[g.Name] == v1alpha2.GroupMark
		if isListed || isSelected || g.hasFound(u, find) {
			g.units.Insert(u.Name)
			u.groups = append(u.groups, g.Name)
		}
	}
	for _, name := range sets.List(listed) {
		g.report.add(v1alpha2.ConditionMissing, "NodeUnitNotFound", fmt.Sprintf("spec.nodeUnits names the NodeUnit %s, which does not exist", name))
	}
}

func (g *group) conflict(format string, args ...any) {
	g.report.add(v1alpha2.ConditionConflict, "Conflict", fmt.Sprintf(format, args...))
}
