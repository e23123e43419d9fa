package expand

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
)

// fleet returns n units, with the default budget. Some have lost their Nodes.
func fleet(t *testing.T, n, lost int) *cluster {
	t.Helper()
	c := newCluster(t)
	c.budget = removal.Default()
	for i := range n {
		c.appear(fmt.Sprintf("u%03d", i))
	}
	if got := len(c.reconcile()); got != n {
		t.Fatalf("%d steps for %d units", got, n)
	}
	for i := range lost {
		c.vanish(fmt.Sprintf("u%03d", i))
	}
	return c
}

// numbered are steps of a verb for the units from one number to before another.
func numbered(verb string, from, to int) []string {
	var steps []string
	for i := from; i < to; i++ {
		steps = append(steps, fmt.Sprintf("%s web-u%03d", verb, i))
	}
	return steps
}

// TestHalfTheFleetIsLost: half of the units are not most of them, so deletions are not held. Not
// more than the budget are deleted within an hour, and the status says what waits.
func TestHalfTheFleetIsLost(t *testing.T) {
	c := fleet(t, 100, 50)
	c.expect(numbered("lost", 0, 50)...)
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
	c.after(5 * time.Minute)
	c.expect(numbered("delete", 0, 5)...)
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True BudgetSpent")
	contains(t, c.message(v1.ConditionDeletionHeld), "45 units are lost and wait", "--unit-removal-budget is 5%", "at most 4 of 95 units",
		"allow-unit-removal=u005@2026-03-01T10:00:00Z,")
	contains(t, c.row("u005").Message, "waits until 2026-03-01T11:06:00Z at least")
	check(t, "looks again after", c.recheck, 61*time.Minute)

	c.after(30 * time.Minute)
	c.restart() // what is spent is in the status, and what waits goes on waiting
	c.expect()
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True BudgetSpent")
	contains(t, c.message(v1.ConditionDeletionHeld), "45 units are lost and wait")
	c.after(66*time.Minute - time.Second)
	c.expect()
	c.after(66 * time.Minute)
	c.expect(numbered("delete", 5, 9)...)

	c.release("u020", "u040") // these need no place
	c.expect("delete web-u020", "delete web-u040")
	c.grid.Annotations[v1.AnnotationRemovalBudget] = "6"
	c.expect(numbered("delete", 9, 11)...)
	for value, says := range map[string]string{"0": `is "0"`, "some": `is "some", which is neither a number of units nor a percentage`, "-1": `is "-1", which is neither`} {
		c.after(100 * time.Hour)
		c.grid.Annotations[v1.AnnotationRemovalBudget] = value
		c.expect()
		check(t, "looks again after", c.recheck, time.Duration(0))
		contains(t, c.row("u011").Message, "is kept, because the annotation superedge.io/unit-removal-budget "+says)
		contains(t, c.message(v1.ConditionDeletionHeld), says)
	}
	c.grid.Annotations[v1.AnnotationRemovalBudget] = "100%"
	c.appear("u012")
	if got := len(c.reconcile()); got != 37 {
		t.Errorf("%d steps, want 36 deletions and one unit that is found", got)
	}
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
}

// TestBudgetWithoutGrace: a grace of 0s does not pass the budget.
func TestBudgetWithoutGrace(t *testing.T) {
	c := fleet(t, 40, 4)
	c.grid.Annotations[v1.AnnotationRemovalGrace] = "0s"
	c.expect("lost web-u002", "lost web-u003", "delete web-u000", "delete web-u001") // 5 % of 40
	check(t, "phase", c.row("u002").Phase, v1.UnitLost)
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True BudgetSpent")
}

// TestLongestLostFirst: places go to the units that were lost first.
func TestLongestLostFirst(t *testing.T) {
	c := fleet(t, 20, 0)
	c.vanish("u007")
	c.expect("lost web-u007")
	c.after(time.Minute)
	c.vanish("u003")
	c.expect("lost web-u003")
	c.after(10 * time.Minute)
	c.expect("delete web-u007")
}

// TestReleases: a release is for one loss. What releases nothing is named with its remedy.
func TestReleases(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.grace = -1
	c.expect(applies("a b c")...)
	c.vanish("a")
	c.expect("lost web-a")
	c.release("a")
	release := c.grid.Annotations[v1.AnnotationAllowRemoval]
	c.appear("a")
	c.expect("found web-a")
	contains(t, c.message(v1.ConditionDeletionHeld), `"a@2026-03-01T10:00:00Z" (that unit is not lost)`)
	c.after(time.Hour)
	c.vanish("a")
	c.expect("lost web-a")
	c.after(24 * time.Hour)
	c.expect() // the release is of the loss before
	contains(t, c.message(v1.ConditionDeletionHeld), `"`+release+`" (write a@2026-03-01T11:00:00Z)`)
	c.grid.Annotations[v1.AnnotationAllowRemoval] = "a,b,*, " + strings.Repeat("long", 100) // the form of before
	c.expect()
	contains(t, c.message(v1.ConditionDeletionHeld), `"a" (write a@2026-03-01T11:00:00Z)`, `"b" (that unit is not lost)`, `"*" (that`)
	if n := len(c.message(v1.ConditionDeletionHeld)); n > 1000 {
		t.Errorf("the message has %d characters", n)
	}
	c.grid.Annotations[v1.AnnotationAllowRemoval] = "a@2026-03-01T11:00:00Z"
	c.expect("delete web-a")
}

// TestSecondBeforeAPlace: with a grace of 0s, what is lost in the second before a place comes back
// waits for it.
func TestSecondBeforeAPlace(t *testing.T) {
	c := fleet(t, 100, 5)
	c.grid.Annotations[v1.AnnotationRemovalGrace] = "0s"
	c.expect(numbered("delete", 0, 5)...) // places are back at 11:01
	c.after(61*time.Minute - 500*time.Millisecond)
	for i := range 40 {
		c.vanish(fmt.Sprintf("u%03d", i+5))
	}
	c.expect(numbered("lost", 5, 45)...)
	c.after(61 * time.Minute)
	c.expect(numbered("delete", 5, 9)...)
}

// TestCommandIsWhole: a command in a message can be copied, however many units are released.
func TestCommandIsWhole(t *testing.T) {
	c := newCluster(t)
	c.budget = removal.Default()
	name := func(i int) string { return fmt.Sprintf("warehouse-region-north-west-%03d", i) }
	for i := range 100 {
		c.appear(name(i))
	}
	c.reconcile()
	for i := range 50 {
		c.vanish(name(i))
	}
	c.reconcile()
	c.after(4 * time.Minute)
	for _, released := range []int{0, 10, 20, 30} {
		var entries []string
		for i := range released {
			entries = append(entries, removal.Entry(name(i+5), start()))
		}
		c.grid.Annotations[v1.AnnotationAllowRemoval] = strings.Join(entries, ",")
		c.after(5*time.Minute - time.Second)
		c.reconcile()
		c.after(5 * time.Minute)
		said := conditionText(Status(c.observe(nil)).Conditions, v1.ConditionDeletionHeld)
		if strings.Contains(said, " bytes) ") || !strings.Contains(said, "allow-unit-removal") {
			t.Errorf("with %d released units: %s", released, said)
		}
	}
}

// TestUnreadableAnnotationsAreCut: they are in the message of each lost unit.
func TestUnreadableAnnotationsAreCut(t *testing.T) {
	for _, annotation := range []string{v1.AnnotationRemovalBudget, v1.AnnotationRemovalGrace} {
		c := fleet(t, 20, 2)
		c.reconcile()
		c.after(5 * time.Minute)
		c.grid.Annotations[annotation] = strings.Repeat("\x01", 200_000)
		a := assess(c.observe(nil))
		for _, u := range a.units[:2] {
			if text := a.lossMessage(u); len(text) > 1500 {
				t.Errorf("%s: the message of unit %s has %d bytes", annotation, u.Value, len(text))
			}
		}
	}
}
