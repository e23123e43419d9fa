package expand

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	"pgregory.net/rapid"
)

// TestOffline: a unit whose Nodes are all not ready waits for them, whatever its child says.
func TestOffline(t *testing.T) {
	for _, test := range []struct {
		name  string
		nodes int // in unit a
		ready int // of these
		with  func(*cluster)
		phase v1.UnitPhase
		says  string
	}{
		{"all ready", 2, 2, nil, v1.UnitReady, ""},
		{"one of two ready", 2, 1, nil, v1.UnitReady, ""},
		{"none ready", 2, 0, nil, v1.UnitOffline, "none of its 2 Nodes is ready"},
		{"the only Node not ready", 1, 0, nil, v1.UnitOffline, "its Node is not ready"},
		{"a rollout waits", 2, 0, func(c *cluster) { c.objects["web-a"].UpdatedReplicas = 0 }, v1.UnitOffline, "this waits: 0 of 2 Pods are updated"},
		{"a rollout of a unit that can be reached", 2, 1, func(c *cluster) { c.objects["web-a"].UpdatedReplicas = 0 }, v1.UnitProgressing, "0 of 2 Pods are updated"},
		{"a stuck rollout waits", 2, 0, func(c *cluster) { c.objects["web-a"].Stalled = "deadline" }, v1.UnitOffline, "this waits: Deployment web-a is stuck: deadline"},
		{"a stuck rollout of a unit that can be reached", 2, 1, func(c *cluster) { c.objects["web-a"].Stalled = "deadline" }, v1.UnitFailed, "is stuck"},
		{"a missing template is not the Nodes' fault", 2, 0, func(c *cluster) { c.grid.Templates = map[string]string{"a": "gone"} }, v1.UnitFailed, "gone"},
		{"nor is a foreign object", 2, 0, func(c *cluster) { c.objects["web-a"].Owner = "somebody" }, v1.UnitFailed, "exists"},
		{"nor is a refusal", 2, 0, func(c *cluster) {
			c.grid.Template = withReplicas(5)
			c.refuse = func(Apply) *Problem { return &Problem{ReasonRefused, "quota"} }
		}, v1.UnitFailed, "quota"},
		{"a change is applied meanwhile", 2, 0, func(c *cluster) { c.grid.Template = withReplicas(5) }, v1.UnitOffline, "none of its 2 Nodes is ready"},
		{"no Nodes", 0, 0, nil, v1.UnitLost, "no Node has the label"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, "a", "a", "a", "a", "a", "b", "c")
			c.expect(applies("a b c")...) // one child in a unit of five Nodes (B-05)
			c.units["a"] = c.units["a"][:test.nodes]
			if test.nodes == 0 {
				c.vanish("a")
			}
			c.ready = map[string]int{"a": test.ready, "b": 1, "c": 1}
			if test.with != nil {
				test.with(c)
			}
			c.reconcile()
			c.reconcile() // in which what was refused is known
			check(t, "phase", c.row("a").Phase, test.phase)
			check(t, "Nodes", c.row("a").Nodes, test.nodes)
			contains(t, c.row("a").Message, test.says)
			if offline := test.phase == v1.UnitOffline; c.status.OfflineUnits != map[bool]int32{true: 1}[offline] || offline != (c.row("a").Reason == ReasonNodesNotReady) {
				t.Errorf("%d units are offline, and the reason of the row is %q", c.status.OfflineUnits, c.row("a").Reason)
			}
			if test.phase == v1.UnitOffline {
				check(t, "rate", c.status.ReadyRate, "2/3")
				check(t, "conditions", fmt.Sprint(c.condition(v1.ConditionReady), ", ", c.condition(v1.ConditionProgressing), ", ", c.condition(v1.ConditionDegraded)),
					"True UnitsReady, False UnitsStable, False AsExpected")
				check(t, "message", c.message(v1.ConditionReady), "all 2 units with ready Nodes are ready; 1 unit offline: a")
			}
		})
	}
}

// TestReadyOfOfflineUnits: condition Ready is about the units that can be reached, and names the
// others.
func TestReadyOfOfflineUnits(t *testing.T) {
	c := running(t, "a b c d")
	c.ready = map[string]int{"d": 1}
	ready := func() string {
		c.reconcile()
		return c.condition(v1.ConditionReady) + ": " + c.message(v1.ConditionReady)
	}
	check(t, "one can be reached", ready(), "True UnitsReady: all 1 units with ready Nodes are ready; 3 units offline: a, b, c")
	c.objects["web-d"].Available = 0
	check(t, "it is changing", ready(), "False UnitsProgressing: 1 of 4 units progressing: d; 3 units offline: a, b, c")
	c.ready = map[string]int{}
	check(t, "none can be reached", ready(), "Unknown AllOffline: no unit has a ready Node; 4 units offline: a, b, c, d")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "False AsExpected")
	c.vanish("d")
	check(t, "the others are lost", ready(), "Unknown AllOffline: no unit has a ready Node; 3 units offline: a, b, c")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True UnitsLost")
	c.ready = nil
	check(t, "readiness is not known", ready(), "True UnitsReady: all 3 units with Nodes are ready")
}

// TestOfflineIsWithoutReadyNodes: whatever happens, a unit is offline if and only if it has Nodes,
// no Node is ready, and it has no problem of its own.
func TestOfflineIsWithoutReadyNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := strings.Fields("a b c d e")
		c := newCluster(t, values...)
		c.refuse = func(s Apply) *Problem {
			if rapid.IntRange(0, 3).Draw(t, "refuse "+s.Child.Value) > 0 {
				return nil
			}
			return &Problem{ReasonRefused, "no"}
		}
		for range 3 {
			c.ready = map[string]int{}
			for _, v := range values {
				if rapid.Bool().Draw(t, "Node of "+v) {
					c.appear(v)
				} else if rapid.Bool().Draw(t, "no Node of "+v) {
					c.vanish(v)
				}
				c.ready[v] = rapid.IntRange(0, len(c.units[v])).Draw(t, "ready Nodes of "+v)
				if l := c.objects["web-"+v]; l != nil {
					l.Stalled = rapid.SampledFrom([]string{"", "deadline"}).Draw(t, "stuck "+v)
					l.Available = rapid.Int32Range(0, 2).Draw(t, "available in "+v)
				}
			}
			c.grid.Templates = map[string]string{rapid.SampledFrom(values).Draw(t, "without template"): "gone"}
			c.reconcile()
			a := assess(c.observe(nil))
			for _, u := range a.units {
				row := a.row(u)
				if want := u.nodes > 0 && c.ready[u.Value] == 0 && u.problem() == nil; want != (row.Phase == v1.UnitOffline) {
					t.Errorf("unit %s with %d Nodes, %d of them ready, and problem %v is %s", u.Value, u.nodes, c.ready[u.Value], u.problem(), row.Phase)
				}
			}
		}
	})
}

// TestRolloutResumes: a rollout that exceeded its deadline while the unit was offline is not stuck
// when the first Node is back. It gets the deadline once more.
func TestRolloutResumes(t *testing.T) {
	c := running(t, "a b")
	l := c.objects["web-a"]
	l.UpdatedReplicas, l.Stalled, l.StalledAt = 0, "deadline", start().Add(time.Hour)
	phase := func() string { c.reconcile(); return fmt.Sprint(c.row("a").Phase, " ", c.recheck) }
	c.ready, c.readySince = map[string]int{"b": 1}, map[string]time.Time{}
	c.after(90 * time.Minute)
	check(t, "offline", phase(), "Offline 0s")
	c.ready, c.readySince = map[string]int{"a": 1, "b": 1}, map[string]time.Time{"a": start().Add(2 * time.Hour)}
	c.after(2*time.Hour + time.Minute)
	check(t, "back", phase(), "Progressing 9m0s")
	c.after(2*time.Hour + 10*time.Minute)
	check(t, "without progress", phase(), "Failed 0s")
	c.grid.Template = []byte(strings.Replace(deployment, "{", `{"progressDeadlineSeconds": 60, `, 1))
	c.reconcile()
	l.UpdatedReplicas = 0
	c.after(2*time.Hour + 59*time.Second)
	check(t, "back, with a deadline in the template", phase(), "Progressing 1s")
	l.StalledAt = start().Add(3 * time.Hour)
	check(t, "stuck while it was there", phase(), "Failed 0s")
	l.StalledAt = time.Time{}
	check(t, "stuck for another reason", phase(), "Failed 0s")
}
