package grid

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/flips"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"
	"gridproxy/controller/retry"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons of Events that are not the reason of a row or of a condition.
const (
	eventUnitReturned   = "UnitReturned"
	eventUnitRemoved    = "UnitRemoved"
	eventHeld           = "DeletionHeld"
	eventRekeyed        = "Rekeyed"
	eventWithdrawing    = "Withdrawing"
	eventNotDistributed = "NotDistributed"
	eventTooManyNew     = "TooManyNewUnits"
)

// notice is an Event to come.
type notice struct{ kind, reason, message string }

// notices returns the Events for the difference between two statuses, at most noticesMax.
// Because the first is one that was announced or written, each transition is reported once,
// even if another controller takes over. Units to which the same happens have one Event.
func notices(before, after v1.WorkloadGridStatus) []notice {
	conditions := func(of string) (was, now *metav1.Condition) {
		return meta.FindStatusCondition(before.Conditions, of), meta.FindStatusCondition(after.Conditions, of)
	}
	var all []notice
	for _, of := range []struct{ condition, event string }{
		{v1.ConditionDeletionHeld, eventHeld}, {v1.ConditionRekeyed, eventRekeyed}, {v1.ConditionWithdrawing, eventWithdrawing},
		{v1.ConditionNotDistributed, eventNotDistributed},
	} {
		was, now := conditions(of.condition)
		if isTrue(now) && (!isTrue(was) || was.Reason != now.Reason) {
			all = append(all, notice{corev1.EventTypeWarning, of.event, now.Message})
		}
	}
	for _, of := range []struct{ condition, reason string }{
		{v1.ConditionReady, expand.ReasonNoUnits},
		{v1.ConditionDegraded, expand.ReasonTooManyUnits}, // the rows say it of every unit, which is not an Event each
	} {
		was, now := conditions(of.condition)
		if hasReason(now, of.reason) && !hasReason(was, of.reason) {
			all = append(all, notice{corev1.EventTypeWarning, now.Reason, now.Message})
		}
	}
	old := map[string]v1.UnitStatus{}
	for _, u := range before.Units {
		old[expand.UnitName(u)] = u
	}
	var lost, failed []v1.UnitStatus
	told := false // by rows
	for _, now := range after.Units {
		told = told || now.Phase == v1.UnitFailed || now.Phase == v1.UnitLost
		switch was := old[expand.UnitName(now)]; {
		case now.Phase == v1.UnitStale: // its cluster says nothing of it
		case now.Phase == v1.UnitLost && was.Phase != v1.UnitLost:
			lost = append(lost, now)
		case was.Phase == v1.UnitLost && now.Phase != v1.UnitLost:
			all = append(all, notice{corev1.EventTypeNormal, eventUnitReturned, fmt.Sprintf("unit %s has Nodes again: %d", expand.UnitName(now), now.Nodes)})
		case now.Reason == expand.ReasonTooManyUnits: // the condition has its own Event
		case now.Phase == v1.UnitFailed && (was.Phase != v1.UnitFailed || was.Reason != now.Reason):
			failed = append(failed, now)
		}
	}
	all = slices.Concat(all, failures(lost), failures(failed))
	// A Grid that is wrong as a whole, or has no units, has no row to say so.
	was, now := conditions(v1.ConditionDegraded)
	if isTrue(now) && !told && !hasReason(now, expand.ReasonTooManyUnits) && (!isTrue(was) || was.Reason != now.Reason) {
		all = append(all, notice{corev1.EventTypeWarning, now.Reason, now.Message})
	}
	return all[:min(len(all), noticesMax)]
}

// failures returns Events about units that are lost or have failed now, one for each problem.
func failures(rows []v1.UnitStatus) []notice {
	var all []notice
	for _, f := range expand.Failures(rows) {
		who := "unit "
		if len(f.Values) > 1 {
			who = "units "
		}
		all = append(all, notice{corev1.EventTypeWarning, f.Reason, who + f.Units() + ": " + f.Message})
	}
	return all
}

// noticed returns what notices and expand.Observed.Reported need of a status that came before.
func noticed(s v1.WorkloadGridStatus) v1.WorkloadGridStatus {
	kept := v1.WorkloadGridStatus{OmittedUnits: s.OmittedUnits}
	for _, c := range s.Conditions {
		kept.Conditions = append(kept.Conditions, metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
	}
	for _, u := range s.Units {
		kept.Units = append(kept.Units, v1.UnitStatus{Cluster: u.Cluster, Value: u.Value, Phase: u.Phase, Reason: u.Reason, Served: u.Served})
	}
	return kept
}

func unitRemoved(s expand.Delete, g expand.Grid) notice {
	return notice{corev1.EventTypeNormal, eventUnitRemoved,
		fmt.Sprintf("unit %s: %s %s is deleted: no Node has the label %s=%s any more", s.Value, g.Kind.Child().Kind, s.Name, g.Key, s.Value)}
}

// tooManyNew returns an Event for each refusal of a new unit that a Node would bring.
func tooManyNew(refused []flips.Refusal, of expand.Observed) []notice {
	var all []notice
	for _, r := range refused {
		all = append(all, notice{corev1.EventTypeWarning, eventTooManyNew, r.Message("label "+of.Grid.Key, of.NewUnits)})
	}
	return all
}

func hasReason(c *metav1.Condition, reason string) bool { return c != nil && c.Reason == reason }

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// missingService is a Service that a template names and that does not exist.
type missingService struct {
	since    time.Time
	reported bool
}

// checkServices looks up the Services that a StatefulSetGrid names. It returns an Event, once,
// for each that is missing for missingServiceGrace, and when to check again; 0: never.
func (r *reconciler) checkServices(ctx context.Context, g expand.Grid, known *remembered) (events []notice, again time.Duration, err error) {
	missing := map[string]missingService{}
	for _, name := range g.ServiceNames() {
		err := r.client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &service{})
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return nil, 0, fmt.Errorf("reading Service %s/%s, which %s %s names: %w", g.Namespace, name, g.Kind, g.Name, err)
		}
		m, found := known.missing[name]
		if !found {
			m.since = r.now()
		}
		if left := m.since.Add(missingServiceGrace).Sub(r.now()); left > 0 {
			again = retry.Earlier(again, left)
		} else if !m.reported {
			mistake := gridspec.WithoutService(name)
			events = append(events, notice{corev1.EventTypeWarning, mistake.Reason, mistake.Wrong + ": " + mistake.Remedy})
			m.reported = true
		}
		missing[name] = m
	}
	known.missing = missing
	return events, again, nil
}
