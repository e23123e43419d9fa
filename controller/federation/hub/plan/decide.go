package plan

import (
	"cmp"
	"slices"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"
	"gridproxy/controller/retry"

	"k8s.io/apimachinery/pkg/labels"
)

// Decide returns which Grids are to be in which cluster, what to write for it, and what to
// report.
//
// A Grid gets the finalizer first, is then listed in the status of the cluster, and only then sent.
// So each Grid in a bundle has a finalizer and is listed. It is removed from the bundle first, then
// from the list, and only then loses the finalizer. Each step is decided on again from what is
// observed, so that a process can end between any two.
func Decide(o Observed) Plan {
	f := fleet{
		Observed: o, grids: sortedGrids(o.Grids), known: map[string]*Grid{}, faults: map[string]v1alpha1.Problem{},
		selected: map[string]map[string]bool{}, anywhere: map[string]bool{}, clusters: map[string]int{}, removals: map[string][]removal.Spent{},
	}
	for _, g := range f.grids {
		f.known[g.UID] = g
		if g.Content.Fault != "" && g.Content.Wanted && !g.Deleting {
			f.faults[g.UID] = v1alpha1.Problem{Reason: reasonFault, Message: g.Content.Fault}
		}
	}
	plan := Plan{Faults: f.faults}
	needed := map[string]bool{} // UIDs of Grids that are in a cluster, or on the way
	for _, c := range slices.SortedFunc(slices.Values(o.Clusters), func(a, b Cluster) int {
		return cmp.Compare(a.Object.Name, b.Object.Name)
	}) {
		m := f.member(c)
		f.members = append(f.members, m)
		for uid := range m.listed {
			f.clusters[uid]++
		}
		for _, r := range m.last.Removals {
			f.removals[r.UID] = append(f.removals[r.UID], removal.Spent{At: r.At.Time, Count: 1})
		}
	}
	for _, m := range f.members {
		plan.Clusters = append(plan.Clusters, m.decide())
		for uid := range m.listed {
			needed[uid] = true
		}
		for _, row := range m.rows {
			needed[row.UID] = true
		}
		for _, uid := range m.expected {
			needed[uid] = true
		}
		if m.detaching() {
			m.recheck = retry.Earlier(m.recheck, detachPollPeriod)
		}
		plan.Recheck = retry.Earlier(retry.Earlier(plan.Recheck, m.silence.recheck), m.recheck)
	}
	for _, g := range f.grids {
		switch {
		case needed[g.UID] && !g.Finalizer && !g.Deleting:
			plan.AddFinalizer = append(plan.AddFinalizer, g.Ref)
		case !needed[g.UID] && g.Finalizer:
			plan.RemoveFinalizer = append(plan.RemoveFinalizer, g.Ref)
		}
	}
	return plan
}

// fleet is what the decisions for all clusters share.
type fleet struct {
	Observed
	grids   []*Grid
	known   map[string]*Grid // by UID
	members []*member
	faults  map[string]v1alpha1.Problem
	// selected is which selectors select the clusters with some labels: by the labels, and then
	// by the selector. Many Grids have one selector, and many clusters the same labels.
	selected map[string]map[string]bool
	// anywhere is which selectors select a cluster, and clusters is how many clusters have a Grid.
	anywhere map[string]bool
	clusters map[string]int
	removals map[string][]removal.Spent // places in the removal budget, by UID
}

// selects reports whether a Grid is meant for the cluster.
func (m *member) selects(c *Content) bool {
	switch answer, known := m.answers[c.Selector]; {
	case c.Selects == nil || known && answer:
		return true
	case known:
		return false
	}
	m.answers[c.Selector] = c.Selects(m.Object.Labels)
	return m.answers[c.Selector]
}

// answersFor returns which selectors are known to select clusters with these labels, or not to.
// These clusters share the map, and selects adds to it.
func (f *fleet) answersFor(of map[string]string) map[string]bool {
	key := labels.FormatLabels(of) // sorted
	if f.selected[key] == nil {
		f.selected[key] = map[string]bool{}
	}
	return f.selected[key]
}

func sortedGrids(all []Grid) []*Grid {
	sorted := make([]*Grid, len(all))
	for i := range all {
		sorted[i] = &all[i]
	}
	slices.SortFunc(sorted, func(a, b *Grid) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return sorted
}
