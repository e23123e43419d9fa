package expand

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// places are those of the removal budget: how many children of lost units may be deleted within an
// hour, so that a mistake that loses many units is seen before it has deleted much. Released units,
// and those that never had a ready Pod, need no place.
type places struct {
	setting string // where the budget comes from, for messages
	allowed int    // within an hour
	left    int
	next    time.Time // when there is a place again if none is left; zero: never
	waiting []string  // the units whose grace is over and that have no place
}

// placesNow returns the places of a Grid's budget: of its annotation, else of the flag. An
// unreadable annotation leaves no place.
func (a *assessment) placesNow() places {
	budget := a.Budget
	p := places{setting: fmt.Sprintf("--unit-removal-budget is %s", budget)}
	if text, found := a.Grid.Annotations[v1.AnnotationRemovalBudget]; found {
		var err error
		budget, err = removal.ParseBudget(text)
		p.setting = fmt.Sprintf("the annotation %s is %s", v1.AnnotationRemovalBudget, excerpt.Quoted(text))
		if err != nil {
			p.setting += ", which is neither a number of units nor a percentage such as 5%"
		}
	}
	p.allowed = budget.Of(a.hold.of)
	p.left, p.next = removal.Left(p.allowed, spentOf(a.Observed.Status), a.Now)
	return p
}

// takePlaces gives the places that are left to the units that were lost first, and lets the
// others wait: it sets a.places and the losses. A unit waits from the end of its grace, whether
// or not this controller has watched for long enough, so that a new leader reports the same.
func (a *assessment) takePlaces() {
	var due []*unit
	for _, u := range a.units {
		if u.loss != nil && !u.loss.released && !u.unserved && !u.deleting() && u.loss.isDue(a.Now, a.second()) {
			due = append(due, u)
		}
	}
	slices.SortFunc(due, func(a, b *unit) int {
		return cmp.Or(a.loss.since.Compare(b.loss.since), cmp.Compare(a.Value, b.Value))
	})
	a.places = a.placesNow()
	for _, u := range due[min(a.places.left, len(due)):] {
		u.loss.waits, u.loss.due = true, a.places.next
		a.places.waiting = append(a.places.waiting, u.Value)
	}
	for _, u := range a.units {
		if u.loss != nil && !u.loss.due.IsZero() && u.loss.watched.After(u.loss.due) {
			u.loss.due = u.loss.watched
		}
	}
}

// ReasonBudgetSpent is the reason of DeletionHeld while units wait for a place in the budget.
const ReasonBudgetSpent = "BudgetSpent"

// held returns the condition DeletionHeld. It also names entries of the annotation allow-removal
// that release nothing.
func (a *assessment) held(t tally) verdict {
	h, p := a.hold, a.places
	v := verdict{metav1.ConditionFalse, "MostUnitsPresent", fmt.Sprintf("%d of %d units are lost", t.lost.n, t.all())}
	switch {
	case h.on():
		v = verdict{metav1.ConditionTrue, reasonMostLost, fmt.Sprintf("%d of %d units that were there are lost, so no child is deleted: %s; check gridUniqKey %q "+
			"and the labels of the Nodes; to delete units anyway, name them: %s", h.lost, h.of, listed(t.lost.names), a.Grid.Key, a.releaseCommand(t.lost.names))}
	case len(p.waiting) > 0:
		v = verdict{metav1.ConditionTrue, ReasonBudgetSpent, fmt.Sprintf("%d units are lost and wait, because %s, so at most %d of %d units are deleted within an hour: "+
			"%s; check that these sites have really gone; to delete them without waiting, name them: %s",
			len(p.waiting), p.setting, p.allowed, h.of, listed(p.waiting), a.releaseCommand(p.waiting))}
	}
	v.message += a.unmatchedReleases()
	return v
}

// releaseCommand returns the command with which a user releases lost units: those of values that
// can go, at most listedMax, beside those that are released already. In place of a command over
// commandMax it returns how to write an entry.
func (a *assessment) releaseCommand(values []string) string {
	var entries, more []string
	size := 0
	for _, u := range a.units {
		switch {
		case u.loss == nil || u.deleting() || u.Problem != nil || u.loss.since.IsZero():
		case u.loss.released:
			entries = append(entries, removal.Entry(u.Value, u.loss.since))
		case slices.Contains(values, u.Value):
			more = append(more, removal.Entry(u.Value, u.loss.since))
		}
	}
	entries = append(entries, more[:min(len(more), listedMax)]...)
	for _, e := range entries {
		size += len(e) + 1
	}
	if size > commandMax {
		return fmt.Sprintf("add entries such as %s to the Grid's annotation %s, separated by commas", entries[len(entries)-1], v1.AnnotationAllowRemoval)
	}
	return fmt.Sprintf("kubectl annotate --overwrite -n %s %s %s %s=%s", a.Grid.Namespace, strings.ToLower(string(a.Grid.Kind)), a.Grid.Name,
		v1.AnnotationAllowRemoval, strings.Join(entries, ","))
}

// unmatchedReleases returns a remark on the entries of the annotation that release nothing, and
// how they must be written; "" without such entries.
func (a *assessment) unmatchedReleases() string {
	losses := map[string]time.Time{}
	for _, u := range a.units {
		if u.loss != nil {
			losses[u.Value] = u.loss.since
		}
	}
	unmatched := slices.DeleteFunc(a.releases.Unmatched(losses), func(r removal.Unmatched) bool {
		return strings.HasPrefix(r.Text, "cluster/") // for the hub; no label value has a /
	})
	if len(unmatched) == 0 {
		return ""
	}
	var texts []string
	for _, r := range unmatched[:min(len(unmatched), listedMax)] {
		if r.Entry != "" {
			texts = append(texts, fmt.Sprintf("%.80q (write %s)", r.Text, r.Entry))
			continue
		}
		texts = append(texts, fmt.Sprintf("%.80q (that unit is not lost)", r.Text))
	}
	if more := len(unmatched) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("; entries of the annotation %s that release nothing: %s", v1.AnnotationAllowRemoval, strings.Join(texts, ", "))
}

func spentOf(s v1.WorkloadGridStatus) []removal.Spent {
	var spent []removal.Spent
	for _, r := range s.Removals {
		spent = append(spent, removal.Spent{At: r.At.Time, Count: int(r.Count)})
	}
	return spent
}

// Removals returns the removals for a status after n more at a time: those that still count.
func Removals(s v1.WorkloadGridStatus, n int, now time.Time) []v1.Removal {
	var removals []v1.Removal
	for _, r := range removal.Spend(spentOf(s), n, now) {
		removals = append(removals, v1.Removal{At: metav1.Time{Time: r.At}, Count: int32(min(r.Count, 1<<31-1))})
	}
	return removals
}

// spendFirst puts a Spend before all steps if any is a Delete that needs a place in the budget.
func spendFirst(steps []Step) []Step {
	n := 0
	for _, s := range steps {
		if d, is := s.(Delete); is && d.NeedsPlace() {
			n++
		}
	}
	if n == 0 {
		return steps
	}
	return slices.Concat([]Step{Spend{Count: n}}, steps)
}
