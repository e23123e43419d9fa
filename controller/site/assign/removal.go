package assign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	gridv1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// removals decides when units that a group has found are deleted. A unit is lost while it has no
// Node. Its clock is an annotation on it, which survives a restart. While most of the group's units
// are lost, none is removed, because that is more likely a mistake than the end of many sites. In
// other cases not more than the budget are removed within an hour. A unit takes its place by a row
// in the group's status, and is deleted by a later decision that sees this row.
type removals struct {
	now     time.Time
	watched time.Time     // since when this controller has watched the cluster itself
	grace   time.Duration // negative: never
	budget  removal.Budget
	plan    *Plan
}

// candidate is a lost unit whose clock runs.
type candidate struct {
	*unit
	since time.Time
	due   time.Time // zero: never
}

// decide decides which of a group's own units are deleted. It puts the annotations that must
// change into edits, by unit, and the rest into the plan and the group.
func (r *removals) decide(g *group, units []*unit, edits map[string]edit) {
	var own, lost []*unit
	for _, u := range units {
		if u.leaving() || u.Spec.Selector.Empty() || !slices.ContainsFunc(u.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == g.UID }) {
			continue
		}
		own = append(own, u)
		if len(u.nodes) == 0 {
			lost = append(lost, u)
		} else if u.Annotations[gridv1.AnnotationLostAt] != "" {
			edits[u.Name].annotation(gridv1.AnnotationLostAt, nil)
		}
	}
	var clocked []candidate
	for _, u := range lost {
		if l, ok := r.clocked(g, u, edits[u.Name]); ok {
			clocked = append(clocked, l)
		}
	}
	releases := removal.ReadReleases(g.Annotations[gridv1.AnnotationAllowRemoval])
	held := len(lost) >= 2 && 2*len(lost) > len(own)
	if held {
		g.hold(clocked, len(lost), len(own))
	}
	g.reportUnmatched(releases, clocked)
	r.remove(g, clocked, releases, held, len(own))
}

// clocked reads the clock of a lost unit. If it has none, it starts it in e, and returns false.
func (r *removals) clocked(g *group, u *unit, e edit) (candidate, bool) {
	since, err := time.Parse(time.RFC3339, u.Annotations[gridv1.AnnotationLostAt])
	if err != nil {
		e.annotation(gridv1.AnnotationLostAt, r.now.UTC().Format(time.RFC3339))
		return candidate{}, false
	}
	l := candidate{unit: u, since: since}
	grace, err := r.graceOf(g, u)
	if err != nil {
		u.report.add(v1alpha2.ConditionInvalid, "InvalidGrace", err.Error()+": until then the unit, which has lost its Nodes, is not removed")
	} else if grace >= 0 {
		l.due = since.Add(grace)
		if watched := r.watched.Add(removal.OwnWatch(grace)); watched.After(l.due) {
			l.due = watched
		}
	}
	return l, true
}

// remove plans the deletion of units whose time has come: of those that are released, and of those
// that have a place in the budget. The others take the places that are left, those first that were
// lost first.
func (r *removals) remove(g *group, lost []candidate, releases removal.Releases, held bool, own int) {
	budget, err := r.budgetOf(g)
	if err != nil {
		g.report.add(v1alpha2.ConditionInvalid, "InvalidBudget", err.Error()+": until then no lost unit is removed unless it is released")
	}
	g.removals = slices.DeleteFunc(slices.Clone(g.Status.Removals), func(o v1alpha2.Removal) bool { return !r.counts(o) })
	left, next := removal.Left(budget.Of(own), spentOf(g.removals), r.now)
	slices.SortFunc(lost, func(a, b candidate) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.Name, b.Name)) })
	hasPlace := func(u candidate) bool {
		return slices.ContainsFunc(g.Status.Removals, func(o v1alpha2.Removal) bool {
			return o.Unit == u.Name && r.counts(o) && !o.At.Time.Before(u.since)
		})
	}
	var waiting []candidate
	for _, u := range lost {
		released := releases.Allow(u.Name, u.since)
		switch {
		case u.due.IsZero() || held && !released:
		case r.now.Before(u.due):
			r.plan.recheckAt(u.due, r.now)
		case released || hasPlace(u):
			r.plan.Delete = append(r.plan.Delete, Delete{
				Name: u.Name, UID: u.UID, ResourceVersion: u.ResourceVersion, Labels: u.Spec.Selector.MatchLabels,
			})
		case left > 0 && len(g.removals) < removalsMax:
			left--
			g.removals = append(g.removals, v1alpha2.Removal{Unit: u.Name, At: metav1.Time{Time: r.now.UTC().Truncate(time.Second).Add(time.Second)}})
		default:
			waiting = append(waiting, u)
		}
	}
	if len(waiting) > 0 {
		if len(g.removals) >= removalsMax {
			next = removal.Recent(spentOf(g.removals), r.now)[0].At.Add(removal.Window)
		}
		g.waits(waiting, budget, own)
		r.plan.recheckAt(next, r.now)
	}
}

func (r *removals) counts(o v1alpha2.Removal) bool { return o.At.Add(removal.Window).After(r.now) }

func spentOf(rows []v1alpha2.Removal) []removal.Spent {
	var spent []removal.Spent
	for _, o := range rows {
		spent = append(spent, removal.Spent{At: o.At.Time, Count: 1})
	}
	return spent
}

// budgetOf returns the budget of the group's annotation, else of the flag. One that cannot be
// read is an error, and allows nothing.
func (r *removals) budgetOf(g *group) (removal.Budget, error) {
	text, found := g.Annotations[gridv1.AnnotationRemovalBudget]
	if !found {
		return r.budget, nil
	}
	budget, err := removal.ParseBudget(text)
	if err != nil {
		return budget, fmt.Errorf("the annotation %s: %w", gridv1.AnnotationRemovalBudget, err)
	}
	return budget, nil
}

// graceOf returns how long a lost unit stays, according to the unit, else the group, else the
// flag. If the result is negative, the unit is never removed.
func (r *removals) graceOf(g *group, u *unit) (time.Duration, error) {
	for _, annotations := range []map[string]string{u.Annotations, g.Annotations} {
		text, found := annotations[gridv1.AnnotationRemovalGrace]
		if !found {
			continue
		}
		grace, err := removal.ParseGrace(text)
		if err != nil {
			return 0, fmt.Errorf("the annotation %s: %w", gridv1.AnnotationRemovalGrace, err)
		}
		return grace, nil
	}
	return r.grace, nil
}

func (g *group) hold(lost []candidate, n, of int) {
	g.report.add(v1alpha2.ConditionDeletionHeld, "MostUnitsLost", fmt.Sprintf(
		"%d of %d found units have no Node, which looks like a mistake; none is removed. %s", n, of, g.releaseCommand(lost)))
}

func (g *group) waits(waiting []candidate, budget removal.Budget, of int) {
	g.report.add(v1alpha2.ConditionDeletionHeld, "BudgetSpent", fmt.Sprintf(
		"%d units are lost and wait: at most %d of %d found units are removed within an hour, because unit-removal-budget is %s. %s",
		len(waiting), min(budget.Of(of), removalsMax), of, budget, g.releaseCommand(waiting)))
}

// releaseCommand returns the command with which a user lets the first of the lost units go, ""
// if all their clocks start now.
func (g *group) releaseCommand(lost []candidate) string {
	var entries []string
	for _, u := range lost[:min(len(lost), shownFindingsMax)] {
		entries = append(entries, removal.Entry(u.Name, u.since))
	}
	if len(entries) == 0 { // their clocks start now
		return ""
	}
	return fmt.Sprintf("To remove the first ones: kubectl annotate --overwrite nodegroup %s %s=%s",
		g.Name, gridv1.AnnotationAllowRemoval, strings.Join(entries, ","))
}

// reportUnmatched reports releases that release nothing, and how they must be written.
func (g *group) reportUnmatched(releases removal.Releases, lost []candidate) {
	losses := map[string]time.Time{}
	for _, u := range lost {
		losses[u.Name] = u.since
	}
	for _, r := range releases.Unmatched(losses) {
		remedy := "no unit of that name is lost"
		if r.Entry != "" {
			remedy = "write " + r.Entry
		}
		g.report.add(v1alpha2.ConditionInvalid, "UnknownRelease", fmt.Sprintf("the entry %.80q of the annotation %s releases nothing: %s",
			r.Text, gridv1.AnnotationAllowRemoval, remedy))
	}
}
