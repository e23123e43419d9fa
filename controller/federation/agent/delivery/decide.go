package delivery

import (
	"maps"
	"slices"

	"gridproxy/controller/api/v1alpha1"
)

// Delivery is what to do for a cluster.
type Delivery struct {
	// Apply is what is to be applied, by the namespace of the Grids on the hub: each set is new or
	// the one that is applied already.
	Apply map[string][]Object
	// Remove are the names of sets that are to be removed with their objects.
	Remove []string
	// Stop are the names of sets whose removal has begun and is not to go on.
	Stop []string
	// Revive are sets whose removal was stopped and has ended without removing everything: what
	// still lives is to be applied again, so that Flux knows it. Whether it lives is to be read live.
	Revive map[string][]Object
	// Suspend: Flux is to leave everything as it is.
	Suspend bool
	// Reports are by their names; nil: those that the hub has are of another cluster, and stay.
	Reports map[string]v1alpha1.GridReportSpec
	// Problems are those of the cluster as a whole.
	Problems []v1alpha1.Problem
}

// Decide returns what to do for a cluster. Without the hub everything that is applied stays
// applied.
func Decide(o Observed) Delivery {
	d := Delivery{Apply: map[string][]Object{}, Revive: map[string][]Object{}}
	a := admission{Observed: o, claims: map[Key]claim{}, problems: map[string]v1alpha1.Problem{}, wanted: map[string]Object{}}
	frozen, admitted := a.frozen(), map[string][]Object{}
	if !frozen {
		a.adopt()
		a.claim()
		for _, name := range a.names() {
			admitted[name] = a.admit(name)
		}
	}
	for _, name := range a.names() {
		copied := a.Copies[name]
		set := copied.Objects
		if !frozen {
			set = a.keep(name, admitted[name])
		}
		switch {
		case a.isStopping(copied, name):
			d.goOn(name, frozen, a)
		case copied.Removing && !copied.Stopped:
			d.Remove = append(d.Remove, name)
		case copied.Unread != "": // what is in it is not known, so nothing about it changes
		case len(set) > 0:
			d.Apply[name] = set
		case len(copied.Objects) > 0:
			d.Remove = append(d.Remove, name)
		}
	}
	d.Suspend = a.suspended()
	d.Problems = a.clusterProblems()
	if !a.replaced() {
		d.Reports = a.reports(d.Apply)
	}
	return d
}

// isStopping reports whether a removal is or was stopped, and the set not yet applied again.
func (a *admission) isStopping(copied Bundle, name string) bool {
	by, found := a.Applied[name]
	if copied.Stopped {
		return !found || by.Deleting // otherwise it is applied again
	}
	return copied.Removing && a.stopped()
}

// goOn decides about a removal that was stopped. Flux ends the deletion of a suspended
// Kustomization without removing anything. Until then the set is in d.Stop, then in d.Revive
// with what is left, which the hub may want again, or in d.Remove if nothing is.
func (d *Delivery) goOn(name string, frozen bool, a admission) {
	if _, ending := a.Applied[name]; ending || frozen || a.Copies[name].Unread != "" {
		d.Stop = append(d.Stop, name)
		return
	}
	var alive []Object
	for _, o := range a.Copies[name].Objects {
		live, found := a.Grids[o.Key]
		if found && (live.From == o.From && live.JSON != nil || live.From == "") { // a user may have removed the annotation
			alive = append(alive, o)
		}
	}
	if len(alive) == 0 {
		d.Remove = append(d.Remove, name)
		return
	}
	d.Revive[name] = alive
}

// names returns the names of all sets, sorted.
func (a *admission) names() []string {
	all := map[string]Bundle{}
	maps.Copy(all, a.Bundles)
	maps.Copy(all, a.Copies)
	return slices.Sorted(maps.Keys(all))
}

// frozen reports whether what is applied must not change at all.
func (a *admission) frozen() bool {
	return a.Fleet == nil || a.Bundles == nil || a.Fleet.Spec.Suspend || a.replaced() ||
		a.Fleet.DeletionTimestamp != nil && a.Fleet.Spec.OnDelete != v1alpha1.Remove
}

// suspended reports whether Flux is to leave everything as it is. An earlier suspension stays
// until it is known whether this is the cluster that the hub means.
func (a *admission) suspended() bool {
	unsure := a.Fleet == nil || a.ClusterUID == ""
	return a.stopped() || unsure && slices.ContainsFunc(slices.Collect(maps.Values(a.Applied)), func(by Applied) bool { return by.Suspended })
}

// stopped reports whether nothing is to change in the cluster, whatever has begun.
func (a *admission) stopped() bool { return a.replaced() || a.Fleet != nil && a.Fleet.Spec.Suspend }

// replaced reports whether the hub knows another cluster under this name.
func (a *admission) replaced() bool {
	return a.Fleet != nil && a.Fleet.Status.ClusterUID != "" && a.ClusterUID != "" && a.Fleet.Status.ClusterUID != a.ClusterUID
}
