package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxRemovals bounds the rows in status.removals, and so how many Grids leave a cluster within an
// hour.
const maxRemovals = 200

// departure is a Grid that a cluster has and that is not meant for it any more: the Grid has lost
// its label, or its selector, its target namespace or the cluster's labels have changed. It leaves
// after a grace, and takes a place in the removal budget first, so that a mistake in one object
// does not end the Pods of all sites.
type departure struct {
	grid  *Grid        // as it is sent until it leaves: in its old place
	since *metav1.Time // nil: its selector matches no cluster, so it stays
	leave bool         // now
	due   bool         // it leaves when it has a place in the removal budget
	text  string       // why it is not meant for the cluster, and what becomes of it
}

// held is in the text of a departure that waits because most Grids of the cluster would leave.
const held = "because most Grids of the cluster would leave at once"

// findDepartures finds the Grids that leave the cluster, and decides which of them leave now. It
// writes the clocks into the rows.
func (m *member) findDepartures() {
	if m.removing {
		return
	}
	present, clocked, wereHeld := 0, 0, false
	for i := range m.rows {
		row := &m.rows[i]
		g := m.known[row.UID]
		if g == nil || g.Deleting {
			continue
		}
		present++
		why := m.unmeant(g, *row)
		if !strings.HasPrefix(row.Leaving, why+";") { // another reason, or none
			m.correct(row)
		}
		if why == "" {
			continue
		}
		wereHeld = wereHeld || strings.Contains(row.Leaving, held)
		d := &departure{grid: g.at(placeOf(*row)), since: row.LeavingSince, text: why}
		m.departures[row.UID] = d
		switch {
		case g.Content.Wanted && !m.selects(&g.Content) && !m.isSelectedAnywhere(&g.Content):
			m.correct(row)
			d.since, d.text = nil, "its selector matches no cluster"
			continue
		case d.since == nil:
			d.since = secondAfter(m.Now)
		}
		if !m.leavesImmediately(d.grid) {
			clocked++
		}
	}
	// It does not end because some of them were released.
	most := clocked >= 2 && 2*clocked > present || clocked > 0 && wereHeld
	for i := range m.rows {
		row := &m.rows[i]
		d := m.departures[row.UID]
		if d == nil {
			continue
		}
		if d.since != nil {
			m.decideDeparture(d, row.LeavingSince != nil, most)
		}
		row.LeavingSince, row.Leaving = d.since, d.text
	}
	if most {
		m.noteMost(clocked, present)
	}
}

// unmeant returns why a Grid that the cluster has is not meant for it; "": it is. What is wrong
// with a Grid as it is written changes nothing.
func (m *member) unmeant(g *Grid, row v1alpha1.ClusterGrid) string {
	switch {
	case !g.Content.Wanted:
		return "it is not labelled for distribution"
	case !m.selects(&g.Content):
		return fmt.Sprintf("its annotation %s does not select cluster %s", v1alpha1.AnnotationClusters, m.name)
	case m.unfit(g) != nil:
		return ""
	case g.Content.TargetNamespace != placeOf(row):
		return fmt.Sprintf("it has another %s", v1alpha1.AnnotationTargetNamespace)
	}
	return ""
}

// correct ends the clock of a Grid that has not left. A place that it has taken is free again.
func (m *member) correct(row *v1alpha1.ClusterGrid) {
	if since := row.LeavingSince; since != nil {
		m.removals = slices.DeleteFunc(m.removals, func(r v1alpha1.GridRemoval) bool { return r.UID == row.UID && !r.At.Time.Before(since.Time) })
	}
	row.LeavingSince, row.Leaving = nil, ""
}

// isSelectedAnywhere reports whether any cluster is selected that is not being deleted.
func (f *fleet) isSelectedAnywhere(c *Content) bool {
	answer, known := f.anywhere[c.Selector]
	if !known {
		answer = slices.ContainsFunc(f.members, func(m *member) bool { return m.Object.DeletionTimestamp == nil && m.selects(c) })
		f.anywhere[c.Selector] = answer
	}
	return answer
}

// decideDeparture decides whether a Grid leaves now. noted: its clock is in the status.
func (m *member) decideDeparture(d *departure, noted, most bool) {
	g, since := d.grid, d.since.Time
	allowed, grace := m.budgetOf(g).Of(m.clustersWith(g.UID)), m.graceOf(g)
	due := since.Add(grace)
	if watched := m.Watched.Add(removal.OwnWatch(grace)); watched.After(due) {
		due = watched
	}
	switch release := "cluster/" + m.name; {
	case noted && (m.leavesImmediately(g) || g.Content.Releases.Allow(release, since) || m.releases.Allow(g.UID, since)):
		d.goes(m.name)
	case most:
		d.text += fmt.Sprintf("; it stays in %s, %s", m.name, held)
	case grace < 0:
		d.text += fmt.Sprintf("; it stays in %s, because unit-removal-grace is never", m.name)
	case allowed == 0:
		d.text += fmt.Sprintf("; it stays in %s, because unit-removal-budget allows none", m.name)
	case m.Now.Before(due):
		m.recheck = earlier(m.recheck, due.Sub(m.Now))
		d.text += fmt.Sprintf("; it leaves %s at %s, then at most %d clusters an hour", m.name, due.UTC().Format(time.RFC3339), allowed)
	case noted && slices.ContainsFunc(m.last.Removals, func(r v1alpha1.GridRemoval) bool {
		return r.UID == g.UID && counts(r, m.Now) && !r.At.Time.Before(since)
	}):
		d.goes(m.name)
	default:
		d.due = true
		d.text += fmt.Sprintf("; it leaves %s when at most %d clusters an hour lose it", m.name, allowed)
	}
}

// goes has the Grid leave with this decision.
func (d *departure) goes(cluster string) {
	d.leave = true
	d.text += fmt.Sprintf("; it leaves %s now", cluster)
}

// takePlaces takes places in the removal budget for the Grids whose time has come. Those of a
// namespace that is left as it is take none, or they would keep others from theirs for nothing; but
// for a Grid that is itself the reason for that.
func (m *member) takePlaces() {
	for _, row := range m.rows {
		if d := m.departures[row.UID]; d != nil && d.due && (!m.stuck[row.Namespace] || m.unfit(d.grid) != nil) {
			m.takePlace(d.grid)
		}
	}
}

// takePlace takes a place in the removal budget, if there is one. The Grid leaves by a later
// decision that sees it in the status.
func (m *member) takePlace(g *Grid) {
	left, next := removal.Left(m.budgetOf(g).Of(m.clustersWith(g.UID)), m.spent(g.UID), m.Now)
	if len(m.removals) >= maxRemovals {
		left, next = 0, m.removals[0].At.Add(removal.Window)
	}
	switch {
	case left > 0:
		r := v1alpha1.GridRemoval{UID: g.UID, At: *secondAfter(m.Now)}
		m.removals = append(m.removals, r)
		m.fleet.removals[g.UID] = append(m.fleet.removals[g.UID], removal.Spent{At: r.At.Time, Count: 1})
	case !next.IsZero():
		m.recheck = earlier(m.recheck, next.Sub(m.Now))
	}
}

// spent returns the places that all clusters have taken for a Grid.
func (f *fleet) spent(uid string) []removal.Spent {
	if f.removals == nil {
		f.removals = map[string][]removal.Spent{}
		for _, m := range f.members {
			for _, r := range m.last.Removals {
				f.removals[r.UID] = append(f.removals[r.UID], removal.Spent{At: r.At.Time, Count: 1})
			}
		}
	}
	return f.removals[uid]
}

// clustersWith returns how many clusters have a Grid.
func (f *fleet) clustersWith(uid string) int {
	n, known := f.clusters[uid]
	if !known {
		for _, m := range f.members {
			if _, listed := m.listed[uid]; listed {
				n++
			}
		}
		f.clusters[uid] = n
	}
	return n
}

// budgetOf is the budget of the Grid's annotation, else of the flag.
func (f *fleet) budgetOf(g *Grid) removal.Budget {
	if g.Content.Budget != nil {
		return *g.Content.Budget
	}
	return f.Budget
}

// noteMost says that most Grids of the cluster would leave at once, and how to let them.
func (m *member) noteMost(n, of int) {
	var entries []string
	for _, row := range m.rows {
		if d := m.departures[row.UID]; d != nil && d.since != nil && len(entries) < maxReleased {
			entries = append(entries, removal.Entry(row.UID, d.since.Time))
		}
	}
	m.note("MostGridsLeave", "%d of %d Grids are not meant for cluster %s any more, which looks like a mistake, so they stay; to let them go: "+
		"kubectl annotate fleetcluster %s --overwrite %s=%s", n, of, m.name, m.name, v1alpha1.AnnotationRelease, strings.Join(entries, ","))
}

// graceOf is the grace of the Grid's annotation, else of the flag.
func (f *fleet) graceOf(g *Grid) time.Duration {
	if g.Content.Grace != nil {
		return *g.Content.Grace
	}
	return f.Grace
}

// leavesImmediately reports whether a person has said that nothing is to wait: there is neither a
// grace nor a limit.
func (f *fleet) leavesImmediately(g *Grid) bool {
	return f.graceOf(g) == 0 && f.budgetOf(g).String() == "100%"
}

func counts(r v1alpha1.GridRemoval, now time.Time) bool { return r.At.Add(removal.Window).After(now) }

// placeOf is the namespace of a Grid in the cluster.
func placeOf(row v1alpha1.ClusterGrid) string {
	if row.TargetNamespace != "" {
		return row.TargetNamespace
	}
	return row.Namespace
}

// secondAfter is a time as a status has it, rounded up, so that no grace is cut.
func secondAfter(t time.Time) *metav1.Time {
	whole := t.UTC().Truncate(time.Second)
	if !whole.Equal(t) {
		whole = whole.Add(time.Second)
	}
	to := metav1.NewTime(whole)
	return &to
}
