package delivery

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
)

// keep returns the set, and with it what would leave it before Flux can prune it: Flux prunes
// only what it knows that it has applied. It does not know a Grid that it is still applying, or
// that it has not applied again since its Kustomization was made again or restored from a
// backup. And it leaves alone what a user has marked so.
func (a *admission) keep(name string, set []Object) []Object {
	by := a.Applied[name]
	kept := slices.Clone(set)
	for _, o := range a.Copies[name].Objects {
		owner, claimed := a.claims[o.Key]
		switch {
		case o.Kind == "Namespace", by.Known[o.Key] && !a.Grids[o.Key].Unpruned, !a.mayLive(name, o):
		case claimed && owner != claim{name, o.From}: // it gets the name, and is applied from there
		case slices.ContainsFunc(set, func(s Object) bool { return s.Key == o.Key }):
		default:
			kept = append(kept, a.asItLives(name, o))
		}
	}
	if len(kept) > len(set) {
		slices.SortFunc(kept, func(x, y Object) int { return compareKeys(x.Key, y.Key) })
	}
	return kept
}

// mayLive reports whether the Grid is in the cluster, or Flux may be making it at this moment.
// A user may have removed the annotation.
func (a *admission) mayLive(name string, o Object) bool {
	live, found := a.Grids[o.Key]
	by := a.Applied[name]
	return found && (live.From == o.From || live.From == "") || !found && by.Busy && !by.Idle
}

// asItLives returns what to apply of a Grid that stays only until Flux knows it, and notes its
// problem. If Flux fails, it returns the Grid as it is in the cluster: Flux may fail because of
// a refused field, and what is in the cluster is not refused.
func (a *admission) asItLives(name string, o Object) Object {
	live := a.Grids[o.Key]
	switch by := a.Applied[name]; {
	case live.Unpruned, by.Failure == "" && !by.Busy && by.Known != nil: // it has applied the rest of the set
		a.problems[o.From] = *problem(ReasonNotPruned, "the hub has withdrawn it, and Flux does not remove it: see whether it has the annotation or label "+
			"kustomize.toolkit.fluxcd.io/reconcile, prune or ssa in the cluster, and remove that, or delete it there")
	case by.Failure != "":
		a.problems[o.From] = *applyFailed(by.Failure)
	}
	if a.Applied[name].Failure != "" && live.JSON != nil {
		o.JSON, o.Revision = live.JSON(), live.Revision
	}
	return o
}

// adopt adds to the copies the Grids of this hub that are in the cluster, but in no bundle and
// no copy, while ConditionDistributionHeld is true: where Flux runs was restored from a backup
// too, and Flux must know them to remove them when the hub says so. They are those that are
// reported, so at most straysMax.
func (a *admission) adopt() {
	if !meta.IsStatusConditionTrue(a.Fleet.Status.Conditions, v1alpha1.ConditionDistributionHeld) {
		return
	}
	keys, sent := map[Key]bool{}, map[string]bool{}
	for _, sets := range []map[string]Bundle{a.Bundles, a.Copies} {
		for _, b := range sets {
			if b.Unread != "" {
				return // it may have any of them
			}
			for _, o := range b.Objects {
				keys[o.Key], sent[o.From] = true, true
			}
		}
	}
	adopted, left := maps.Clone(a.Copies), straysMax
	isLost := func(key Key) bool {
		live := a.Grids[key]
		return live.JSON != nil && strings.HasPrefix(live.From, a.Hub+"/") && !a.withdrawn(live.From) && !keys[key] && !sent[live.From]
	}
	for _, key := range interleave(a.Grids, isLost) {
		live := a.Grids[key]
		if !isLost(key) || left == 0 {
			continue
		}
		left--
		sent[live.From] = true // two can have one annotation
		set := adopted[key.Namespace]
		set.Objects = append(slices.Clip(set.Objects), Object{Key: key, From: live.From, Revision: live.Revision, JSON: live.JSON()})
		adopted[key.Namespace] = set
	}
	a.Copies = adopted
}
