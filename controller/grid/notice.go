package grid

import (
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/expand"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons of Events that are not the reason of a row or of a condition.
const (
	eventUnitLost     = "UnitLost"
	eventUnitReturned = "UnitReturned"
	eventUnitRemoved  = "UnitRemoved"
	eventHeld         = "DeletionHeld"
	eventRekeyed      = "Rekeyed"
)

// notice is an Event to come.
type notice struct{ kind, reason, message string }

// maxNotices bounds the Events of one status. If a hundred units change at once, the conditions
// report it.
const maxNotices = 20

// notices are the Events for the difference between two written statuses. Because written statuses
// are compared, each transition is reported once, even if another controller takes over in between.
func notices(before, after v1.WorkloadGridStatus) []notice {
	var all []notice
	for _, of := range []struct{ condition, event string }{{v1.ConditionDeletionHeld, eventHeld}, {v1.ConditionRekeyed, eventRekeyed}} {
		now, was := condition(after, of.condition), condition(before, of.condition)
		if isTrue(now) && (!isTrue(was) || was.Reason != now.Reason) {
			all = append(all, notice{corev1.EventTypeWarning, of.event, now.Message})
		}
	}
	if now := condition(after, v1.ConditionReady); hasNoUnits(now) && !hasNoUnits(condition(before, v1.ConditionReady)) {
		all = append(all, notice{corev1.EventTypeWarning, now.Reason, now.Message})
	}
	old := map[string]v1.UnitStatus{}
	for _, u := range before.Units {
		old[u.Value] = u
	}
	told := false // by rows
	for _, u := range after.Units {
		told = told || u.Phase == v1.UnitFailed || u.Phase == v1.UnitLost
		if n, ok := unitNotice(old[u.Value], u); ok {
			all = append(all, n)
		}
	}
	// A Grid that is wrong as a whole, or has no units, has no row to say so.
	now, was := condition(after, v1.ConditionDegraded), condition(before, v1.ConditionDegraded)
	if isTrue(now) && !told && (!isTrue(was) || was.Reason != now.Reason) {
		all = append(all, notice{corev1.EventTypeWarning, now.Reason, now.Message})
	}
	return all[:min(len(all), maxNotices)]
}

// unitNotice compares two rows of a unit; the first is zero if the unit is new.
func unitNotice(was, now v1.UnitStatus) (notice, bool) {
	switch {
	case now.Phase == v1.UnitLost && was.Phase != v1.UnitLost:
		return notice{corev1.EventTypeWarning, eventUnitLost, about(now)}, true
	case was.Phase == v1.UnitLost && now.Phase != v1.UnitLost:
		return notice{corev1.EventTypeNormal, eventUnitReturned, fmt.Sprintf("unit %s has Nodes again: %d", now.Value, now.Nodes)}, true
	case now.Phase == v1.UnitFailed && (was.Phase != v1.UnitFailed || was.Reason != now.Reason):
		return notice{corev1.EventTypeWarning, now.Reason, about(now)}, true
	}
	return notice{}, false
}

func about(u v1.UnitStatus) string { return fmt.Sprintf("unit %s: %s", u.Value, u.Message) }

func unitRemoved(s expand.Delete, g expand.Grid) notice {
	return notice{corev1.EventTypeNormal, eventUnitRemoved,
		fmt.Sprintf("unit %s: %s %s is deleted: no Node has the label %s=%s any more", s.Value, g.Kind.Child().Kind, s.Name, g.Key, s.Value)}
}

// condition is the condition of a type; nil if there is none.
func condition(s v1.WorkloadGridStatus, of string) *metav1.Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == of {
			return &s.Conditions[i]
		}
	}
	return nil
}

func hasNoUnits(c *metav1.Condition) bool { return c != nil && c.Reason == expand.ReasonNoUnits }

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }
