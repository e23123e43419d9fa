package delivery

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
)

// adopt adds to the copies the Grids of this hub that are in the cluster, but in no bundle and
// no copy, while ConditionDistributionHeld is true: where Flux runs was restored from a backup
// too, and Flux must know them to remove them when the hub says so. They are those that are
// reported, so at most maxStrays.
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
	adopted, left := maps.Clone(a.Copies), maxStrays
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
