package expand

import (
	"fmt"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/flips"

	"pgregory.net/rapid"
)

// TestMaxUnits: above the limit no child is created, existing ones follow the Grid, and one that
// another client deletes comes back; the status says so once.
func TestMaxUnits(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.maxUnits = 3
	c.expect(applies("a b c")...)
	c.appear("d", "e")
	if look := Decide(c.observe(nil)).Look; len(look) > 0 {
		t.Errorf("reads names that it does not want: %v", look)
	}
	c.expect()
	check(t, "row of d", c.row("d").Phase+" "+v1.UnitPhase(c.row("d").Reason), "Failed TooManyUnits")
	check(t, "last row", c.status.Units[4].Value, "e")
	check(t, "row of a", c.row("a").Phase, v1.UnitReady)
	check(t, "Ready", c.condition(v1.ConditionReady), "False TooManyUnits")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True TooManyUnits")
	contains(t, c.message(v1.ConditionDegraded), "5 units", "limit of 3", "--max-units", "2 units have none", `"zone"`)
	c.grid.Template = withReplicas(5)
	c.expect(applies("a b c")...)
	delete(c.objects, "web-b")
	c.expect("apply web-b")
	c.vanish("a") // counts while its child is there
	c.expect("lost web-a")
	c.vanish("d")
	c.expect()
	c.after(10 * time.Minute)
	check(t, "steps", c.reconcile(), []string{"delete web-a"})
	c.expect("apply web-e") // which the deletion of the child causes
	check(t, "Degraded when there is room", c.condition(v1.ConditionDegraded), "False AsExpected")
}

// TestMaxUnitsDeletesNothing: a lower limit stops replacements, which delete first, and nothing
// else.
func TestMaxUnitsDeletesNothing(t *testing.T) {
	c := running(t, "a b c")
	c.maxUnits = 1
	c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
	c.grid.Template = withReplicas(5)
	c.refuse = func(Apply) *Problem { return Immutable("field is immutable") }
	c.expect("refused web-a", "refused web-b", "refused web-c")
	check(t, "children", len(c.objects), 3)
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True UnitsFailed")
	c.maxUnits = 3
	c.reconcile()
	check(t, "children that stay when there is room, and one is replaced", len(c.objects), 2)
}

// TestMaxUnitsAnnotation: it lowers the operator's limit and never raises it.
func TestMaxUnitsAnnotation(t *testing.T) {
	for _, test := range []struct {
		flag    int
		text    string
		applied string
		says    string
	}{
		{0, "2", "", "annotation superedge.io/max-units"},
		{0, "3", "a b c", ""},
		{3, "2", "", "limit of 2 (annotation superedge.io/max-units)"},
		{2, "3", "", "limit of 2 (--max-units)"},
		{2, "99999999999999999999", "", "limit of 0"},
		{5, "many", "", `"many" and not a whole number`},
		{5, "-1", "", `"-1" and not a whole number`},
		{5, " 4 ", "a b c", ""},
	} {
		t.Run(fmt.Sprint(test.flag, " ", test.text), func(t *testing.T) {
			c := newCluster(t, "a", "b", "c")
			c.maxUnits, c.grid.Annotations[v1.AnnotationMaxUnits] = test.flag, test.text
			c.expect(applies(test.applied)...)
			contains(t, c.message(v1.ConditionReady), test.says)
		})
	}
	c := newServices(t)
	c.maxUnits, c.grid.Annotations[v1.AnnotationMaxUnits] = 1, "0"
	c.appear("a", "b")
	check(t, "steps for a Service", len(Decide(c.observe([]string{"web-svc"})).Steps), 1)
	check(t, "annotations of a Service", Children(c.grid, nil, nil)[0].Object.GetAnnotations()[v1.AnnotationMaxUnits], "")
}

// TestChildrenNeverExceedTheLimit, whatever happens to Nodes and children.
func TestChildrenNeverExceedTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		l.maxUnits = rapid.IntRange(1, 4).Draw(t, "limit")
		actions := l.actions()
		for _, other := range []string{"somebodyMakesAnObject", "somebodyTakesAChild", "somebodyTakesALabel", "keyChanges"} {
			delete(actions, other) // then children come and go without a creation of ours
		}
		actions[""] = func(t *rapid.T) {
			before := len(l.objects)
			for _, step := range l.reconcile() {
				if l.grid.Annotations[v1.AnnotationPaused] == "" && len(l.units) > l.maxUnits && len(step) > 8 && step[:8] == "replace " {
					t.Errorf("above the limit: %s", step)
				}
			}
			if n := len(l.objects); n > max(before, l.maxUnits) {
				t.Errorf("%d children after %d, with a limit of %d", n, before, l.maxUnits)
			}
		}
		t.Repeat(actions)
	})
}

// TestReplacedChildComesBack: a child that was deleted to be replaced is created again, although
// the limit is passed in between and its template names the replicas.
func TestReplacedChildComesBack(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.maxUnits = 3
	c.expect(applies("a b c")...)
	c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
	c.grid.Template = withReplicas(7)
	c.refuse = c.immutableBut(-1)
	c.reconcile()
	check(t, "steps", c.reconcile(), []string{"replace web-a"})
	c.appear("d")
	check(t, "steps", c.reconcile(), []string{"apply web-a"})
}

// TestNewUnits: a Node that takes a thousand values within three hours brings five units to a Grid
// of ten. No deletion is held for that, and a real new site has its child immediately.
func TestNewUnits(t *testing.T) {
	c := newCluster(t, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	c.newUnits = 5
	c.expect(applies("a b c d e f g h i j")...)
	children := map[string]bool{}
	for i := range 1000 {
		value := fmt.Sprint("evil-", i)
		c.units[value] = []string{"evil"}
		c.reconcile()
		for name := range c.objects {
			children[name] = true
		}
		check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
		delete(c.units, value)
		c.now = c.now.Add(10 * time.Second)
	}
	check(t, "children", len(children), 15)
	check(t, "children after the grace", len(c.objects), 10)
	check(t, "reports", len(c.refused), 3)
	c.units["k"] = []string{"evil", "node-k"}
	c.expect("apply web-k")
	c.units["l"] = []string{"evil"}
	c.expect()
	check(t, "units", c.status.UnitNumber, 11)
	c.now = c.now.Add(c.recheck)
	check(t, "room", c.now, start().Add(flips.Window))
	c.expect("apply web-l")
}
