package expand

import (
	"fmt"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tally holds the values of a Grid's units by phase.
type tally struct {
	ready, progressing, failed, lost []string
	first                            string // the message of the first failed one
}

func tallyOf(rows []v1.UnitStatus) tally {
	var t tally
	for _, r := range rows {
		switch r.Phase {
		case v1.UnitReady:
			t.ready = append(t.ready, r.Value)
		case v1.UnitProgressing:
			t.progressing = append(t.progressing, r.Value)
		case v1.UnitLost:
			t.lost = append(t.lost, r.Value)
		default:
			if len(t.failed) == 0 {
				t.first = r.Message
			}
			t.failed = append(t.failed, r.Value)
		}
	}
	return t
}

func (t tally) all() int { return len(t.ready) + len(t.progressing) + len(t.failed) + len(t.lost) }

// verdict is a condition without its type and time.
type verdict struct {
	status  bool
	reason  string
	message string
}

// conditions are all conditions of a Grid. Others, such as SuperEdge's CreateError, which stayed
// when the error was gone (B-25), are dropped.
func (a *assessment) conditions(t tally) []metav1.Condition {
	ready, degraded := a.ready(t), t.degraded()
	progressing := verdict{len(t.progressing) > 0, "UnitsStable", "no unit is changing"}
	if progressing.status {
		progressing = verdict{true, "UnitsProgressing", count(t.progressing, t.all(), "progressing")}
	}
	held := a.held(t)
	if p := a.problem; p != nil {
		ready, degraded = verdict{false, p.Reason, p.Message}, verdict{true, p.Reason, p.Message}
		progressing = verdict{false, p.Reason, p.Message}
		held = verdict{false, p.Reason, "existing children are not changed"}
	}
	return a.dated(map[string]verdict{
		v1.ConditionReady: ready, v1.ConditionProgressing: progressing, v1.ConditionDegraded: degraded,
		v1.ConditionDeletionHeld: held,
	})
}

// ready covers the units with Nodes. Degraded reports the units without Nodes, unless the Grid has
// no others.
func (a *assessment) ready(t tally) verdict {
	v := verdict{true, "UnitsReady", fmt.Sprintf("all %d units with Nodes are ready", len(t.ready))}
	switch {
	case t.all() == 0:
		v = verdict{true, "NoUnits", fmt.Sprintf("no Node has the label %s; label Nodes with it to have a unit", a.Grid.Key)}
	case len(t.failed) > 0:
		v = verdict{false, "UnitsFailed", count(t.failed, t.all(), "failed")}
	case len(t.progressing) > 0:
		v = verdict{false, "UnitsProgressing", count(t.progressing, t.all(), "progressing")}
	case len(t.ready) == 0:
		v = verdict{false, "UnitsLost", count(t.lost, t.all(), "lost")}
	}
	if names := a.returnedTemplates(); len(names) > 0 {
		v.message += fmt.Sprintf("; unused templates were added again after their removal and are kept: %s; "+
			"remove them at their source, or set autoDeleteUnusedTemplate to false", listed(names))
	}
	return v
}

func (t tally) degraded() verdict {
	switch {
	case len(t.failed) > 0:
		return verdict{true, "UnitsFailed", count(t.failed, t.all(), "failed") + "; " + t.failed[0] + ": " + t.first}
	case len(t.lost) > 0:
		return verdict{true, "UnitsLost", count(t.lost, t.all(), "lost")}
	default:
		return verdict{false, "AsExpected", "no unit has failed or is lost"}
	}
}

func (a *assessment) held(t tally) verdict {
	h := a.hold
	if !h.on() {
		return verdict{false, "MostUnitsPresent", fmt.Sprintf("%d of %d units are lost", h.lost, h.of)}
	}
	return verdict{true, "MostUnitsLost", fmt.Sprintf("%d of %d units are lost, so no child is deleted: %s; check gridUniqKey %q and the "+
		"labels of the Nodes; to delete units anyway, name them: kubectl annotate --overwrite -n %s %s %s %s=%s",
		h.lost, h.of, listed(t.lost), a.Grid.Key, a.Grid.Namespace, strings.ToLower(string(a.Grid.Kind)), a.Grid.Name,
		v1.AnnotationAllowRemoval, strings.Join(t.lost[:min(len(t.lost), maxListed)], ","))}
}

// serviceConditions are those of a ServiceGrid, which has no units that could be lost.
func (a *assessment) serviceConditions(row v1.UnitStatus) []metav1.Condition {
	bad := row.Phase == v1.UnitFailed
	ready := verdict{row.Phase == v1.UnitReady, "ServiceReady", "the Service is what the Grid asks for"}
	progressing := verdict{false, "ServiceStable", "the Service is not changing"}
	degraded := verdict{false, "AsExpected", "nothing is wrong"}
	switch {
	case bad:
		ready.reason, ready.message = row.Reason, row.Message
		degraded = verdict{true, row.Reason, row.Message}
	case !ready.status:
		ready.reason, ready.message = row.Reason, row.Message
		progressing = verdict{true, row.Reason, row.Message}
	}
	return a.dated(map[string]verdict{
		v1.ConditionReady: ready, v1.ConditionProgressing: progressing, v1.ConditionDegraded: degraded,
	})
}

// dated makes conditions, in a fixed order. Each has the time at which its status last changed.
func (a *assessment) dated(verdicts map[string]verdict) []metav1.Condition {
	var all []metav1.Condition
	for _, of := range []string{v1.ConditionReady, v1.ConditionProgressing, v1.ConditionDegraded, v1.ConditionDeletionHeld} {
		v, found := verdicts[of]
		if !found {
			continue
		}
		c := metav1.Condition{
			Type: of, Status: metav1.ConditionFalse, Reason: v.reason, Message: v.message,
			ObservedGeneration: a.Grid.Generation, LastTransitionTime: metav1.Time{Time: a.second()},
		}
		if v.status {
			c.Status = metav1.ConditionTrue
		}
		if i := slices.IndexFunc(a.Observed.Status.Conditions, func(p metav1.Condition) bool { return p.Type == of }); i >= 0 {
			if before := a.Observed.Status.Conditions[i]; before.Status == c.Status {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
		all = append(all, c)
	}
	return all
}

// maxListed is how many names a message lists.
const maxListed = 10

func count(values []string, of int, what string) string {
	return fmt.Sprintf("%d of %d units %s: %s", len(values), of, what, listed(values))
}

func listed(names []string) string {
	text := strings.Join(names[:min(len(names), maxListed)], ", ")
	if more := len(names) - maxListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
