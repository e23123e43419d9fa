package expand

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	"pgregory.net/rapid"
)

// mostRepairs is how many repairs of one child fall into a minute at most: the free ones, the one
// that begins the contest, and those after pauses of 1, 2, 4, 8 and 16 seconds.
const mostRepairs = 11

// rival changes or deletes a child, whichever way a client may.
func (c *cluster) rival(name, how string) {
	l := c.objects[name]
	if l == nil {
		return
	}
	switch how {
	case "field":
		l.Owned = `{"f:spec":{}}`
	case "owner":
		l.Owner = ""
	case "SuperEdge":
		l.Predecessors = []Predecessor{{Manager: superEdge, Owned: `{"f:spec":{"f:replicas":{}}}`}}
	case "delete":
		delete(c.objects, name)
		return
	}
	c.touch(l)
}

// TestRepairsAreLimited: whatever another client does to a child, and whenever, there are at most
// mostRepairs applies of it in any minute, and it is repaired at the latest when it is due.
func TestRepairsAreLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t, "a", "b")
		c.reconcile()
		var at []time.Time
		for range rapid.IntRange(1, 80).Draw(t, "turns") {
			c.now = c.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "busy") {
				c.rival("web-a", rapid.SampledFrom([]string{"field", "owner", "SuperEdge", "delete"}).Draw(t, "how"))
			}
			for _, step := range c.reconcile() {
				if strings.HasSuffix(step, " web-b") {
					t.Errorf("the child that no client changed: %s", step)
				}
				at = append(at, c.now)
			}
			recent := 0
			for _, then := range at {
				if c.now.Sub(then) < time.Minute {
					recent++
				}
			}
			if recent > mostRepairs {
				t.Fatalf("%d applies within a minute", recent)
			}
		}
		if d := Decide(c.observe([]string{"web-a"})).Recheck; d > contestPeriod {
			t.Errorf("the next decision is %s away", d)
		}
		c.now = c.now.Add(repairDelayMax)
		c.reconcile()
		if l := c.objects["web-a"]; l == nil || l.Owner != c.grid.UID || len(c.reconcile()) > 0 {
			t.Errorf("not repaired after the longest pause: %+v", l)
		}
	})
}

// TestContest: from the sixth repair in a minute the child is contested, which the status says, and
// which ends a minute after the last repair.
func TestContest(t *testing.T) {
	c := running(t, "a b")
	for range freeRepairs {
		c.rival("web-a", "field")
		c.expect("apply web-a")
		check(t, "phase", c.row("a").Phase, v1.UnitReady)
	}
	c.rival("web-a", "field")
	plan := Decide(c.observe(nil))
	if s, ok := plan.Steps[0].(Apply); !ok || !s.Repair || !s.Contested {
		t.Fatalf("steps %+v", plan.Steps)
	}
	c.expect("apply web-a")
	check(t, "row", c.row("a").Phase+" "+v1.UnitPhase(c.row("a").Reason), "Failed Contested")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True UnitsFailed")
	contains(t, c.row("a").Message, "Deployment web-a", "template")

	at := time.Duration(0)
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		c.rival("web-a", "field")
		c.after(at + pause*time.Second - 1)
		c.expect()
		check(t, "recheck", c.recheck, time.Nanosecond)
		at += pause * time.Second
		c.after(at)
		c.expect("apply web-a")
	}
	before := c.status
	c.after(at + contestPeriod - 1)
	c.expect()
	check(t, "recheck", c.recheck, time.Nanosecond)
	check(t, "status", fmt.Sprint(c.status), fmt.Sprint(before))
	c.after(at + contestPeriod)
	c.expect()
	check(t, "phase", c.row("a").Phase, v1.UnitReady)
	c.rival("web-a", "field")
	c.expect("apply web-a")
	check(t, "phase after it", c.row("a").Phase, v1.UnitReady)
}

// TestWishesAreNotLimited: what the Grid asks for is applied at once, contested or not, however
// often it changes.
func TestWishesAreNotLimited(t *testing.T) {
	c := running(t, "a")
	for range freeRepairs + 1 {
		c.rival("web-a", "field")
		c.expect("apply web-a")
	}
	c.rival("web-a", "field")
	c.expect()
	for n := range 20 {
		c.grid.Template = withReplicas(n)
		c.expect("apply web-a")
	}
	check(t, "row", c.row("a").Reason, ReasonContested)
}
