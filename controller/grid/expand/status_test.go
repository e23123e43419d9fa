package expand

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func condition(of string, at time.Time) metav1.Condition {
	return metav1.Condition{Type: of, Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: metav1.Time{Time: at}}
}

func isHeld(c metav1.Condition) bool { return c.Type == v1.ConditionDeletionHeld }

// TestRollout: when a unit is ready, and what the status says until then.
func TestRollout(t *testing.T) {
	const extra = `"paused": true, "updateStrategy": {"rollingUpdate": {"partition": 2}}, `
	for _, test := range []struct {
		name                                    string
		kind                                    Kind
		template                                string // fields besides deployment's
		replicas, updated, ready, available, of int32  // of: status.replicas
		behind                                  bool   // observedGeneration
		stalled                                 string
		phase                                   v1.UnitPhase
		says                                    string
	}{
		{name: "all there", kind: DeploymentGrid, replicas: 3, updated: 3, ready: 3, available: 3, of: 3, phase: v1.UnitReady},
		{name: "none wanted", kind: DeploymentGrid, phase: v1.UnitReady},
		{name: "not seen yet", kind: DeploymentGrid, behind: true, phase: v1.UnitProgressing, says: "has not seen the last change"},
		{name: "updating", kind: DeploymentGrid, replicas: 3, updated: 1, ready: 3, available: 3, of: 3, phase: v1.UnitProgressing, says: "1 of 3 Pods are updated"},
		{name: "paused", kind: DeploymentGrid, template: extra, replicas: 3, updated: 1, ready: 3, available: 3, of: 3, phase: v1.UnitProgressing, says: "paused"},
		{name: "old ones left", kind: DeploymentGrid, replicas: 3, updated: 3, ready: 3, available: 3, of: 4, phase: v1.UnitProgressing, says: "1 old Pods"},
		{name: "not available", kind: DeploymentGrid, replicas: 3, updated: 3, ready: 3, available: 2, of: 3, phase: v1.UnitProgressing, says: "2 of 3 Pods are available"},
		{name: "stalled", kind: DeploymentGrid, replicas: 3, of: 1, stalled: "quota exceeded", phase: v1.UnitFailed, says: "Deployment web-a is stuck: quota exceeded"},
		{name: "set, all there", kind: StatefulSetGrid, replicas: 3, updated: 3, ready: 3, of: 3, phase: v1.UnitReady},
		{name: "set, not ready", kind: StatefulSetGrid, replicas: 3, updated: 3, ready: 1, of: 1, phase: v1.UnitProgressing, says: "1 of 3 Pods are ready"},
		{name: "set, updating", kind: StatefulSetGrid, replicas: 3, updated: 2, ready: 3, of: 3, phase: v1.UnitProgressing, says: "2 of 3 Pods are updated"},
		{name: "set, scaling down", kind: StatefulSetGrid, replicas: 1, updated: 1, ready: 2, of: 2, phase: v1.UnitProgressing, says: "1 Pods too many"},
		{name: "set, partition", kind: StatefulSetGrid, template: extra, replicas: 3, updated: 1, ready: 3, of: 3, phase: v1.UnitReady},
		{name: "set, OnDelete", kind: StatefulSetGrid, template: `"updateStrategy": {"type": "OnDelete"}, `, replicas: 3, ready: 3, of: 3, phase: v1.UnitReady},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, "a")
			c.grid.Kind = test.kind
			c.grid.Template = []byte("{" + test.template + strings.Replace(deployment[1:], `"replicas": 2,`, "", 1))
			c.expect("apply web-a")
			l := c.objects["web-a"]
			l.Replicas, l.UpdatedReplicas, l.ReadyReplicas, l.Available, l.StatusReplicas = &test.replicas, test.updated, test.ready, test.available, test.of
			l.Stalled = test.stalled
			if test.behind {
				l.Generation = 2
			}
			c.expect()
			check(t, "phase", c.row("a").Phase, test.phase)
			contains(t, c.row("a").Message, test.says)
			if test.says == "" {
				check(t, "message", c.row("a").Message, "")
			}
		})
	}
}

// TestStatusOfMixedGrid: a row for each unit, lost ones first, then failed and changing ones, and
// what the conditions make of them.
func TestStatusOfMixedGrid(t *testing.T) {
	c := newCluster(t, "e", "d", "c", "b", "a", "z")
	c.grid.Generation = 7
	c.grid.Templates = map[string]string{"d": "gone"}
	c.foreign(Live{Name: "web-b", OwnerName: "HelmRelease/web"})
	c.reconcile()
	c.appear("a")
	c.objects["web-c"].Available = 1
	c.vanish("z")
	c.reconcile()
	var rows []string
	for _, r := range c.status.Units {
		rows = append(rows, fmt.Sprintf("%s %s %d/%d %s %s", r.Value, r.Child, r.ReadyReplicas, r.Nodes, r.Phase, r.Reason))
	}
	want := []string{
		"z web-z 2/0 Lost UnitLost", "b web-b 0/1 Failed NameCollision", "d web-d 0/1 Failed MissingTemplate",
		"c web-c 2/1 Progressing RollingOut", "a web-a 2/2 Ready ", "e web-e 2/1 Ready ",
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	check(t, "units", c.status.UnitNumber, 5)
	check(t, "rate", c.status.ReadyRate, "2/6")
	check(t, "observedGeneration", c.status.ObservedGeneration, 7)
	check(t, "Ready", c.condition(v1.ConditionReady)+": "+c.message(v1.ConditionReady), "False UnitsFailed: 2 of 6 units failed: b, d")
	check(t, "Progressing", c.condition(v1.ConditionProgressing)+": "+c.message(v1.ConditionProgressing), "True UnitsProgressing: 1 of 6 units progressing: c")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True UnitsFailed")
	contains(t, c.message(v1.ConditionDegraded), "2 of 6 units failed: b, d; b: Deployment web-b exists", "; d: ")
	check(t, "failed and lost", fmt.Sprint(c.status.FailedUnits, c.status.LostUnits, c.status.OmittedUnits), "2 1 0")
	check(t, "states", len(States(c.observe(nil))), 3)
}

// TestStatusIsCut at 1,000 rows; the bad ones are among them, and the counts are of all.
func TestStatusIsCut(t *testing.T) {
	c := newCluster(t)
	for i := range 1100 {
		c.appear(fmt.Sprintf("u%04d", i))
	}
	c.grid.Templates = map[string]string{"u1099": "gone"}
	c.reconcile()
	check(t, "rows", len(c.status.Units), 1000)
	check(t, "omitted", c.status.OmittedUnits, 100)
	check(t, "failed", c.status.FailedUnits, 1)
	check(t, "first row", c.status.Units[0].Value, "u1099")
	check(t, "rate", c.status.ReadyRate, "1099/1100")
	check(t, "states", len(States(c.observe(nil))), 1000)
}

// TestTransitionTimes stay while a condition's status stays, whatever else changes.
func TestTransitionTimes(t *testing.T) {
	c := running(t, "a b")
	times := func() string {
		var text []string
		for _, condition := range c.status.Conditions {
			text = append(text, string(condition.Status)+condition.LastTransitionTime.UTC().Format(" 15:04"))
			check(t, "nanoseconds", condition.LastTransitionTime.Nanosecond(), 0)
		}
		return strings.Join(text, ", ")
	}
	check(t, "at first", times(), "True 10:00, False 10:00, False 10:00, False 10:00, False 10:00")
	c.after(time.Minute)
	c.expect()
	check(t, "when nothing happens", times(), "True 10:00, False 10:00, False 10:00, False 10:00, False 10:00")
	c.vanish("a")
	c.expect("lost web-a")
	check(t, "a unit is lost", times(), "True 10:00, False 10:00, True 10:01, False 10:00, False 10:00")
	c.after(2*time.Minute - time.Millisecond) // an API server keeps whole seconds
	c.objects["web-b"].Available = 0
	c.expect()
	check(t, "a Pod falls", times(), "False 10:02, True 10:02, True 10:01, False 10:00, False 10:00, True 10:02")
}

// TestStatusIsQuiet: as time passes and nothing happens, no byte of the status changes.
func TestStatusIsQuiet(t *testing.T) {
	c := running(t, "a b c")
	c.vanish("a")
	c.objects["web-b"].Available = 0
	c.misplaced = []Pod{misplaced("web-c-1", "web-c", 0)}
	c.expect("lost web-a")
	before := c.status
	c.after(time.Minute + time.Millisecond)
	c.expect()
	if d := cmp.Diff(before, c.status); d != "" {
		t.Errorf("the status changed:\n%s", d)
	}
}

// TestStatusOfAnApplyThatFailed: a unit is not ready in the new generation while its child is as
// the old one asked for.
func TestStatusOfAnApplyThatFailed(t *testing.T) {
	c := running(t, "a")
	l := c.objects["web-a"]
	l.UpdatedReplicas, l.ReadyReplicas, l.Available, l.StatusReplicas = 2, 2, 2, 2
	if row := Status(c.observe(nil)).Units[0]; row.Phase != v1.UnitReady {
		t.Fatalf("before the change: %+v", row)
	}
	c.grid.Template, c.grid.Generation = []byte(strings.Replace(deployment, "echo:1", "echo:2", 1)), 2
	s := Status(c.observe(nil)) // no step was executed
	if row := s.Units[0]; row.Phase != v1.UnitProgressing || row.Reason != "Applying" || row.Message == "" {
		t.Errorf("%+v", row)
	}
	if ready := s.Conditions[0]; ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != 2 {
		t.Errorf("%+v", ready)
	}
}

// TestMemoIsOfThisState: what was assessed before a decision that found the key unusable is not
// reported after it.
func TestMemoIsOfThisState(t *testing.T) {
	c := running(t, "a b")
	Decide(c.observe(nil)) // then a live read fails, so nothing is reported
	c.grid.Key, c.grid.Generation = "", 2
	o := c.observe(nil)
	Decide(o)
	o.Decided = true
	s := Status(o)
	check(t, "generation", s.ObservedGeneration, 2)
	check(t, "Ready says", s.Conditions[0].Reason, ReasonEmpty)
}
