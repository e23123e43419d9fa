package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"
	"gridproxy/controller/retry"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// findDepartures finds the Grids that leave the cluster, and decides which of them leave now.
// It writes them into m.departures, and the clocks into the rows.
func (m *member) findDepartures() {
	if m.removing {
		return
	}
	present, clocked, most := 0, 0, false
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
		d := &departure{grid: g.at(placeOf(*row)), text: why}
		m.departures[row.UID] = d
		if why == noCluster { // so it has no clock
			row.Leaving = why
			continue
		}
		d.since = cmp.Or(row.LeavingSince, secondAfter(m.Now))
		most = most || strings.Contains(row.Leaving, held)
		if !m.leavesImmediately(d.grid) {
			clocked++
		}
	}
	// It does not end because some of them were released.
	most = most && clocked > 0 || clocked >= 2 && 2*clocked > present
	for i := range m.rows {
		if d := m.departures[m.rows[i].UID]; d != nil && d.since != nil {
			m.decideDeparture(d, &m.rows[i], most)
		}
	}
	if most {
		m.noteMost(clocked, present)
	}
}

// noCluster is why a Grid stays where it is although it is not meant for the cluster.
const noCluster = "its selector matches no cluster"

// unmeant returns why a Grid that the cluster has is not meant for it; "": it is. What is wrong
// with a Grid as it is written changes nothing.
func (m *member) unmeant(g *Grid, row v1alpha1.ClusterGrid) string {
	switch {
	case !g.Content.Wanted:
		return "it is not labelled for distribution"
	case !m.selects(&g.Content) && !m.isSelectedAnywhere(&g.Content):
		return noCluster
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

// decideDeparture decides whether a Grid leaves now, and writes its clock into its row. It leaves
// only by a clock that is in the status.
func (m *member) decideDeparture(d *departure, row *v1alpha1.ClusterGrid, most bool) {
	g, since, noted := d.grid, d.since.Time, row.LeavingSince != nil
	allowed, grace := m.budgetOf(g).Of(m.clusters[g.UID]), m.graceOf(g)
	due := since.Add(grace)
	if watched := m.Watched.Add(removal.OwnWatch(grace)); watched.After(due) {
		due = watched
	}
	switch release := "cluster/" + m.name; {
	case noted && (m.leavesImmediately(g) || g.Content.Releases.Allow(release, since) || m.releases.Allow(g.UID, since)):
		d.leave = true
	case most:
		d.text += fmt.Sprintf("; it stays in %s, %s", m.name, held)
	case grace < 0:
		d.text += fmt.Sprintf("; it stays in %s, because unit-removal-grace is never", m.name)
	case allowed == 0:
		d.text += fmt.Sprintf("; it stays in %s, because unit-removal-budget allows none", m.name)
	case m.Now.Before(due):
		m.recheck = retry.Earlier(m.recheck, due.Sub(m.Now))
		d.text += fmt.Sprintf("; it leaves %s at %s, then at most %d clusters an hour", m.name, due.UTC().Format(time.RFC3339), allowed)
	case noted && slices.ContainsFunc(m.last.Removals, func(r v1alpha1.GridRemoval) bool {
		return r.UID == g.UID && counts(r, m.Now) && !r.At.Time.Before(since)
	}):
		d.leave = true
	default:
		d.due = true
		d.text += fmt.Sprintf("; it leaves %s when at most %d clusters an hour lose it", m.name, allowed)
	}
	if !d.leave { // otherwise the row goes, or stays as it is
		row.LeavingSince, row.Leaving = d.since, d.text
	}
}

// takePlaces takes places in the removal budget for the Grids whose time has come. Those of a
// namespace that is left as it is take none, or they would keep others from theirs for nothing. A
// Grid that is itself the reason for that takes one.
func (m *member) takePlaces() {
	for _, row := range m.rows {
		d := m.departures[row.UID]
		if d == nil || !d.due || m.stuck[row.Namespace] && m.unfit(d.grid) == nil {
			continue
		}
		left, next := removal.Left(m.budgetOf(d.grid).Of(m.clusters[row.UID]), m.fleet.removals[row.UID], m.Now)
		if until := m.fullUntil(row.Namespace); !until.IsZero() {
			left, next = 0, until
		}
		if left == 0 {
			m.recheck = retry.Earlier(m.recheck, next.Sub(m.Now))
			continue
		}
		r := v1alpha1.GridRemoval{UID: row.UID, At: *secondAfter(m.Now)} // it leaves by a decision that sees this in the status
		m.removals = append(m.removals, r)
		m.fleet.removals[r.UID] = append(m.fleet.removals[r.UID], removal.Spent{At: r.At.Time, Count: 1})
	}
}

// fullUntil returns when status.removals has room for a Grid of a namespace; zero: it has room now.
func (m *member) fullUntil(namespace string) time.Time {
	of := slices.DeleteFunc(slices.Clone(m.removals), func(r v1alpha1.GridRemoval) bool { return m.known[r.UID].Namespace != namespace })
	switch {
	case len(of) >= removalsMax/2:
		return of[0].At.Add(removal.Window)
	case len(m.removals) >= removalsMax:
		return m.removals[0].At.Add(removal.Window)
	}
	return time.Time{}
}

// budgetOf and graceOf return the values of the Grid's annotations, else those of the flags.
func (f *fleet) budgetOf(g *Grid) removal.Budget { return *cmp.Or(g.Content.Budget, &f.Budget) }
func (f *fleet) graceOf(g *Grid) time.Duration   { return *cmp.Or(g.Content.Grace, &f.Grace) }

// noteMost notes that most Grids of the cluster would leave at once, and how to let them.
func (m *member) noteMost(n, of int) {
	var entries []string
	for _, row := range m.rows {
		if d := m.departures[row.UID]; d != nil && d.since != nil && len(entries) < releasedMax {
			entries = append(entries, removal.Entry(row.UID, d.since.Time))
		}
	}
	m.note(obstacle{"MostGridsLeave", fmt.Sprintf("%d of %d Grids are not meant for cluster %s any more, which looks like a mistake, so they stay; "+
		"to let them go: kubectl annotate fleetcluster %s --overwrite %s=%s", n, of, m.name, m.name, v1alpha1.AnnotationRelease, strings.Join(entries, ","))})
}

// leavesImmediately reports whether a person has said that nothing is to wait: there is neither a
// grace nor a limit.
func (f *fleet) leavesImmediately(g *Grid) bool {
	return f.graceOf(g) == 0 && f.budgetOf(g).String() == "100%"
}

// counts reports whether a place in the removal budget is still taken.
func counts(r v1alpha1.GridRemoval, now time.Time) bool { return r.At.Add(removal.Window).After(now) }

// placeOf returns the namespace of a Grid in the cluster.
func placeOf(row v1alpha1.ClusterGrid) string { return cmp.Or(row.TargetNamespace, row.Namespace) }

// secondAfter returns a time as a status has it, rounded up to the second, so that no grace is
// cut.
func secondAfter(t time.Time) *metav1.Time {
	return &metav1.Time{Time: t.UTC().Add(time.Second - 1).Truncate(time.Second)}
}
