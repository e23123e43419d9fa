package grid

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func statusOf(conditions []metav1.Condition, units ...v1.UnitStatus) v1.WorkloadGridStatus {
	return v1.WorkloadGridStatus{GridStatus: v1.GridStatus{Conditions: conditions}, Units: units}
}

func is(condition, status, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: condition, Status: metav1.ConditionStatus(status), Reason: reason, Message: "why"}}
}

func unitIs(phase v1.UnitPhase, reason string) v1.UnitStatus {
	return v1.UnitStatus{Value: "a", Phase: phase, Reason: reason, Message: "why", Nodes: 2}
}

// TestNotices: each transition is reported once, and a state never.
func TestNotices(t *testing.T) {
	ready, lost := statusOf(nil, unitIs(v1.UnitReady, "")), statusOf(nil, unitIs(v1.UnitLost, "UnitLost"))
	collision := statusOf(is(v1.ConditionDegraded, "True", "UnitsFailed"), unitIs(v1.UnitFailed, "NameCollision"))
	refused := statusOf(is(v1.ConditionDegraded, "True", "UnitsFailed"), unitIs(v1.UnitFailed, "Refused"))
	held, free := statusOf(is(v1.ConditionDeletionHeld, "True", "MostUnitsLost")), statusOf(is(v1.ConditionDeletionHeld, "False", "MostUnitsPresent"))
	empty := statusOf(is(v1.ConditionDegraded, "True", "Empty"))
	many := statusOf(is(v1.ConditionDegraded, "True", "TooManyUnits"), unitIs(v1.UnitFailed, "TooManyUnits"), v1.UnitStatus{Value: "b", Phase: v1.UnitLost, Reason: "UnitLost", Message: "why"})
	for _, c := range []struct {
		what          string
		before, after v1.WorkloadGridStatus
		want          []notice
	}{
		{"a new unit", statusOf(nil), ready, nil},
		{"lost", ready, lost, []notice{{"Warning", "UnitLost", "unit a: why"}}},
		{"still lost", lost, lost, nil},
		{"returned", lost, ready, []notice{{"Normal", "UnitReturned", "unit a has Nodes again: 2"}}},
		{"returned to a failure", lost, refused, []notice{{"Normal", "UnitReturned", "unit a has Nodes again: 2"}}},
		{"gone", lost, statusOf(nil), nil},
		{"failed from the beginning", statusOf(nil), collision, []notice{{"Warning", "NameCollision", "unit a: why"}}},
		{"still failed", collision, collision, nil},
		{"failed for another reason", collision, refused, []notice{{"Warning", "Refused", "unit a: why"}}},
		{"mended", refused, ready, nil},
		{"held", free, held, []notice{{"Warning", "DeletionHeld", "why"}}},
		{"held from the beginning", statusOf(nil), held, []notice{{"Warning", "DeletionHeld", "why"}}},
		{"still held", held, held, nil},
		{"no longer held", held, free, nil},
		{"no key", ready, empty, []notice{{"Warning", "Empty", "why"}}},
		{"still no key", empty, empty, nil},
		{"too many units", lost, many, []notice{{"Warning", "TooManyUnits", "why"}, {"Normal", "UnitReturned", "unit a has Nodes again: 2"}, {"Warning", "UnitLost", "unit b: why"}}},
		{"too many units from the beginning", statusOf(nil), many, []notice{{"Warning", "TooManyUnits", "why"}, {"Warning", "UnitLost", "unit b: why"}}},
		{"still too many units", many, many, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			for what, before := range map[string]v1.WorkloadGridStatus{"a written status": c.before, "an announced one": noticed(c.before)} {
				if diff := cmp.Diff(c.want, notices(before, c.after), cmp.AllowUnexported(notice{})); diff != "" {
					t.Errorf("after %s (-want +got)\n%s", what, diff)
				}
			}
		})
	}
}

// TestNoticesAreGrouped: what happens to many units alike is one Event.
func TestNoticesAreGrouped(t *testing.T) {
	var refused []v1.UnitStatus
	for i := range 300 {
		value := fmt.Sprintf("u%03d", i)
		refused = append(refused, v1.UnitStatus{Value: value, Child: "web-" + value, Phase: v1.UnitFailed, Reason: "Refused", Message: "web-" + value + " is refused"})
	}
	want := []notice{{"Warning", "Refused", "units u000, u001, u002 and 297 more: web-u000 is refused"}}
	if diff := cmp.Diff(want, notices(statusOf(nil), statusOf(nil, refused...)), cmp.AllowUnexported(notice{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNoticesAreBounded(t *testing.T) {
	var many []v1.UnitStatus
	for i := range 100 {
		many = append(many, v1.UnitStatus{Value: fmt.Sprint(i), Phase: v1.UnitLost, Message: fmt.Sprint("why ", i)})
	}
	held := statusOf(is(v1.ConditionDeletionHeld, "True", "MostUnitsLost"), many...)
	got := notices(statusOf(nil), held)
	if len(got) != noticesMax || got[0].reason != eventHeld {
		t.Errorf("%d notices, the first is %v", len(got), got[0])
	}
}

// TestFederationOff: a Grid that asks to be distributed where nothing distributes it says so in a
// condition, with one Event. Ready is not changed by it.
func TestFederationOff(t *testing.T) {
	of := func(off bool) v1.WorkloadGridStatus {
		return expand.Status(expand.Observed{
			Grid:          expand.Grid{Spec: gridspec.Spec{Kind: expand.DeploymentGrid, Key: "zone"}, Name: "web"},
			FederationOff: off,
		})
	}
	without, with := of(false), of(true)
	if c := meta.FindStatusCondition(with.Conditions, v1.ConditionNotDistributed); !isTrue(c) || c.Reason != "FederationOff" {
		t.Errorf("the condition is %+v", c)
	}
	if c := meta.FindStatusCondition(without.Conditions, v1.ConditionNotDistributed); c != nil {
		t.Errorf("without a reason the condition is %+v", c)
	}
	if was, is := meta.FindStatusCondition(without.Conditions, v1.ConditionReady), meta.FindStatusCondition(with.Conditions, v1.ConditionReady); *was != *is {
		t.Errorf("Ready was %+v and is %+v", was, is)
	}
	if all := notices(without, with); len(all) != 1 || all[0].reason != eventNotDistributed {
		t.Errorf("the Events are %v", all)
	}
	if all := notices(with, with); len(all) != 0 {
		t.Errorf("said again: %v", all)
	}
}

type services struct {
	client.Client
	exist map[string]bool
}

func (s services) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if s.exist[key.String()] {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, key.Name)
}

// TestMissingService: one Event a minute after a Service is first missed, and again after it was
// there in between.
func TestMissingService(t *testing.T) {
	const template = `{"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": {"spec": {}}}`
	now, exist := time.Unix(1000, 0), map[string]bool{}
	r := reconciler{client: services{exist: exist}, now: func() time.Time { return now }}
	known := &remembered{}
	g := expand.Grid{Spec: gridspec.Spec{Kind: expand.StatefulSetGrid, Template: []byte(template)}, Namespace: "shop", Name: "db"}
	for i, step := range []struct {
		after  time.Duration
		exists bool
		events int
		again  time.Duration
	}{
		{0, false, 0, time.Minute},
		{59 * time.Second, false, 0, time.Second},
		{time.Second, false, 1, 0},
		{time.Hour, false, 0, 0},
		{0, true, 0, 0},
		{time.Second, false, 0, time.Minute},
		{time.Minute, false, 1, 0},
	} {
		now, exist["shop/db"] = now.Add(step.after), step.exists
		events, again, err := r.checkServices(t.Context(), g, known)
		if err != nil || len(events) != step.events || again != step.again {
			t.Errorf("step %d: %v, again after %s: %v", i, events, again, err)
		}
	}
	for _, kind := range []expand.Kind{expand.DeploymentGrid, expand.ServiceGrid} {
		g.Kind = kind
		if _, again, err := r.checkServices(t.Context(), g, &remembered{}); err != nil || again != 0 {
			t.Errorf("a %s waits for a Service for %s: %v", kind, again, err)
		}
	}
}
