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
	// Suspend: Flux is to leave everything as it is.
	Suspend bool
	// Reports are by their names; nil: those that the hub has are of another cluster, and stay.
	Reports map[string]v1alpha1.GridReportSpec
	// Problems are those of the cluster as a whole.
	Problems []v1alpha1.Problem
}

// Decide decides. Without the hub everything that is applied stays applied.
func Decide(o Observed) Delivery {
	d := Delivery{Apply: map[string][]Object{}}
	a := admission{Observed: o, claims: map[Key]claim{}, problems: map[string]v1alpha1.Problem{}, wanted: map[string]Object{}}
	frozen := a.frozen()
	if !frozen {
		a.adopt()
		a.claim(a.names())
	}
	admitted := map[string][]Object{}
	if !frozen {
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
		case copied.Removing:
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

// names are those of all sets, sorted.
func (a *admission) names() []string {
	all := maps.Clone(a.Bundles)
	if all == nil {
		all = map[string]Bundle{}
	}
	maps.Copy(all, a.Copies)
	return slices.Sorted(maps.Keys(all))
}

// frozen: what is applied is not changed at all.
func (a *admission) frozen() bool {
	return a.Fleet == nil || a.Bundles == nil || a.Fleet.Spec.Suspend || a.replaced() ||
		a.Fleet.DeletionTimestamp != nil && a.Fleet.Spec.OnDelete != v1alpha1.Remove
}

// suspended: Flux is to leave everything as it is. What it was told stays until it is known whether
// this is the cluster that the hub means.
func (a *admission) suspended() bool {
	switch {
	case a.replaced(), a.Fleet != nil && a.Fleet.Spec.Suspend:
		return true
	case a.Fleet == nil || a.ClusterUID == "":
		return slices.ContainsFunc(slices.Collect(maps.Values(a.Applied)), func(by Applied) bool { return by.Suspended })
	}
	return false
}

// replaced: the hub has heard another cluster under this name.
func (a *admission) replaced() bool {
	return a.Fleet != nil && a.Fleet.Status.ClusterUID != "" && a.ClusterUID != "" && a.Fleet.Status.ClusterUID != a.ClusterUID
}
