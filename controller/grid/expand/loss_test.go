package expand

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
)

// What becomes of children whose units lose their Nodes. The clock is Observed.Now; it is ten
// o'clock at the start, and the grace is 5 minutes.

func applies(values string) []string { return each("apply", values) }

func each(verb, values string) []string {
	var steps []string
	for _, v := range strings.Fields(values) {
		steps = append(steps, verb+" web-"+v)
	}
	return steps
}

// TestUnitsLost: of how many units how many must be lost for deletions to be held.
func TestUnitsLost(t *testing.T) {
	for _, test := range []struct {
		name, units, lost string
		held              bool
	}{
		{"1 of 1", "a", "a", false},
		{"1 of 2", "a b", "a", false},
		{"2 of 2", "a b", "a b", true},
		{"2 of 3", "a b c", "a b", true},
		{"3 of 6", "a b c d e f", "a b c", false},
		{"4 of 6", "a b c d e f", "a b c d", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := running(t, test.units)
			c.vanish(strings.Fields(test.lost)...)
			c.expect(each("lost", test.lost)...)
			check(t, "lost at", c.row("a").LostAt.UTC(), start())
			check(t, "phase", c.row("a").Phase, v1.UnitLost)
			if !test.held {
				check(t, "looks again after", c.recheck, 5*time.Minute)
			}

			c.after(5*time.Minute - time.Second)
			c.expect()
			c.after(5 * time.Minute)
			if test.held {
				c.expect()
				check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
				check(t, "looks again after", c.recheck, time.Duration(0))
				check(t, "objects", c.names(), strings.Fields("web-"+strings.ReplaceAll(test.units, " ", " web-")))
				return
			}
			c.expect(each("delete", test.lost)...)
			check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
		})
	}
}

// TestHoldEnds: when so many Nodes are back that 2k ≤ n, the clocks of the others, which have run,
// count.
func TestHoldEnds(t *testing.T) {
	c := running(t, "a b c")
	c.vanish("a", "b")
	c.expect(each("lost", "a b")...)
	c.after(time.Hour)
	c.expect()
	contains(t, c.message(v1.ConditionDeletionHeld), "2 of 3 units", "a, b",
		"kubectl annotate --overwrite -n default deploymentgrid web superedge.io/allow-unit-removal=a@2026-03-01T10:00:00Z,b@2026-03-01T10:00:00Z")
	contains(t, c.row("a").Message, "no Node has the label zone=a since 2026-03-01T10:00:00Z", "2 of 3 units are lost")
	c.appear("b")
	c.expect("found web-b", "delete web-a")
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
}

// TestHoldLetsOthersGrow: creates and updates elsewhere continue.
func TestHoldLetsOthersGrow(t *testing.T) {
	c := running(t, "a b c")
	c.vanish("a", "b")
	c.expect(each("lost", "a b")...)
	c.appear("d")
	c.seize("web-c", "spec", "replicas")
	c.expect("apply web-c", "apply web-d")
}

// TestNodeReturns one second before the end: the clock is removed, and starts again the next time.
func TestNodeReturns(t *testing.T) {
	c := running(t, "a b")
	c.vanish("a")
	c.expect("lost web-a")
	c.after(5*time.Minute - time.Second)
	c.appear("a")
	c.expect("found web-a")
	check(t, "phase", c.row("a").Phase, v1.UnitReady)
	check(t, "lost at", c.row("a").LostAt, "<nil>")
	c.after(6 * time.Minute)
	c.vanish("a")
	c.expect("lost web-a")
	c.after(11*time.Minute - time.Second)
	c.expect()
	c.after(11 * time.Minute)
	c.expect("delete web-a")
}

// TestOwnWatch: a new leader finds clocks that have run out. It deletes nothing before it has
// watched for two minutes, or for the grace if that is shorter; released units are no exception.
func TestOwnWatch(t *testing.T) {
	for _, test := range []struct {
		grace, want time.Duration
		release     bool
	}{
		{5 * time.Minute, 2 * time.Minute, false}, {time.Minute, time.Minute, false}, {0, 0, false},
		{5 * time.Minute, 2 * time.Minute, true},
	} {
		c := running(t, "a b")
		c.vanish("a")
		c.expect("lost web-a")
		c.grace = test.grace
		c.after(24 * time.Hour)
		c.restart()
		if test.release {
			c.release("a")
		}
		if test.want > 0 {
			c.expect()
			check(t, "looks again after", c.recheck, test.want)
			c.after(24*time.Hour + test.want)
			c.expect("delete web-a")
		} else {
			c.expect("delete web-a")
		}
	}
}

// TestMistypedKey: a gridUniqKey with a typing error loses all units at once. Nothing happens to
// them, and correcting it undoes all. With SuperEdge everything was gone (B-14).
func TestMistypedKey(t *testing.T) {
	c := running(t, "a b c")
	nodes := c.units
	c.grid.Key, c.grid.Generation, c.units = "zoen", 2, map[string][]string{}
	c.expect(each("lost", "a b c")...)
	c.after(24 * time.Hour)
	c.expect()
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
	check(t, "Ready", c.condition(v1.ConditionReady), "False UnitsLost")
	contains(t, c.message(v1.ConditionDeletionHeld), `check gridUniqKey "zoen"`)
	c.grid.Key, c.grid.Generation, c.units = "zone", 3, nodes
	c.expect(each("found", "a b c")...)
	check(t, "Ready", c.condition(v1.ConditionReady), "True UnitsReady")
}

// TestEditedKey: the children of the old key are lost units, those of values that both keys have
// get the new nodeSelector.
func TestEditedKey(t *testing.T) {
	c := running(t, "a b c d")
	c.grid.Key, c.grid.Generation = "site", 2
	c.vanish("a")
	c.expect("lost web-a", "apply web-b", "apply web-c", "apply web-d")
	check(t, "nodeSelector", c.objects["web-b"].NodeSelector, MakePairs(map[string]string{"site": "b"}))
	check(t, "nodeSelector of the lost one", c.objects["web-a"].NodeSelector, MakePairs(map[string]string{"zone": "a"}))
	c.after(5 * time.Minute)
	c.expect("delete web-a")
}

// TestRekeyed: gridUniqKey is mistyped, and Nodes carry the wrong key with as many values. The
// children that are made for these are no reason to delete those of the sites that are there.
func TestRekeyed(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.age = 0
	c.expect(applies("a b c")...)
	c.after(time.Hour)
	zones := c.units
	c.grid.Key, c.grid.Generation, c.units, c.others = "zoen", 2, map[string][]string{}, map[string]map[string][]string{"zone": zones}
	c.appear("d", "e", "f")
	c.expect(append(each("lost", "a b c"), applies("d e f")...)...)
	c.after(3 * time.Hour)
	c.expect()
	check(t, "objects", c.names(), []string{"web-a", "web-b", "web-c", "web-d", "web-e", "web-f"})
	check(t, "Rekeyed", c.condition(v1.ConditionRekeyed), "True KeyChanged")
	contains(t, c.message(v1.ConditionRekeyed), `gridUniqKey is "zoen"`, "label zone", "3 children", "a, b, c",
		"kubectl annotate --overwrite -n default deploymentgrid web superedge.io/allow-unit-removal=a@2026-03-01T11:00:00Z,b@2026-03-01T11:00:00Z,c@2026-03-01T11:00:00Z")
	contains(t, c.row("a").Message, "it selects zone=a, which Nodes have")
	check(t, "looks again after", c.recheck, time.Minute)

	delete(zones, "a") // the site goes, and most of those that were there are lost still
	c.expect()
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
	contains(t, c.message(v1.ConditionRekeyed), "2 children", "b, c")

	c.grid.Key = "" // while the key cannot be used, what is known stays
	c.expect()
	check(t, "Rekeyed", c.condition(v1.ConditionRekeyed), "True KeyChanged")
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")

	c.grid.Key = "zoen"
	c.release("b")
	c.expect("delete web-b")
	c.release("a", "c")
	c.expect("delete web-a", "delete web-c")
	check(t, "Rekeyed", c.condition(v1.ConditionRekeyed), "False SameKey")
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
}

// TestRekeyedWithoutLabels: whoever removes the labels of a child's key does not make it deletable.
func TestRekeyedWithoutLabels(t *testing.T) {
	c := running(t, "a b c d")
	c.grid.Key, c.others = "site", map[string]map[string][]string{"zone": {"a": {"node"}}}
	c.vanish("a")
	c.expect("lost web-a", "apply web-b", "apply web-c", "apply web-d")
	unset(&c.objects["web-a"].Labels, v1.LabelKey)
	c.after(time.Hour)
	c.expect()
	check(t, "Rekeyed", c.condition(v1.ConditionRekeyed), "True KeyChanged")
	c.others = nil
	c.expect("delete web-a")
}

// TestRekeyedWithAnotherValue: a value that is no DNS name has a child with a hash in its name. An
// annotation that makes another value of it does not make the child deletable.
func TestRekeyedWithAnotherValue(t *testing.T) {
	c := newCluster(t, "Berlin", "b", "c", "d")
	c.reconcile()
	name := c.grid.childName("Berlin")
	c.grid.Key, c.others = "site", map[string]map[string][]string{"zone": {"Berlin": {"node"}}}
	c.vanish("Berlin")
	set(&c.objects[name].Annotations, v1.AnnotationValue, strings.TrimPrefix(name, "web-"))
	c.reconcile()
	c.after(time.Hour)
	c.expect()
	check(t, "Rekeyed", c.condition(v1.ConditionRekeyed), "True KeyChanged")
}

// TestTemplateSelects: what the template itself asks for is no former key.
func TestTemplateSelects(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.grid.Template = []byte(strings.Replace(deployment, `"containers"`, `"nodeSelector": {"class": "a"}, "containers"`, 1))
	c.expect(applies("a b c")...)
	c.others = map[string]map[string][]string{"class": {"a": {"node"}}}
	c.vanish("a")
	c.expect("lost web-a")
	check(t, "Rekeyed", c.condition(v1.ConditionRekeyed), "False SameKey")
	c.after(5 * time.Minute)
	c.expect("delete web-a")
}

// TestReleasesAddUp: the command that a message has keeps what is released already, and leaves out
// what no release lets go.
func TestReleasesAddUp(t *testing.T) {
	c := newCluster(t)
	for i := range 15 {
		c.appear(fmt.Sprintf("u%02d", i))
	}
	c.reconcile()
	c.units = map[string][]string{}
	c.reconcile()
	c.release("u00", "u01")
	c.grid.Annotations[v1.AnnotationAllowRemoval] += ",elsewhere"
	c.grid.Templates = map[string]string{"u02": "gone"}
	c.reconcile()
	var all []string
	for _, u := range strings.Fields("u00 u01 u03 u04 u05 u06 u07 u08 u09 u10 u11 u12") {
		all = append(all, u+"@2026-03-01T10:00:00Z")
	}
	contains(t, c.message(v1.ConditionDeletionHeld), "allow-unit-removal="+strings.Join(all, ",")+"; entries", `"elsewhere" (that unit is not lost)`)
}

// TestNewValues: all Nodes get other values at once, by a mistake in what labels them. The new
// units do not outnumber the lost ones; those that join later, in a Grid that keeps data of one
// that is gone, count.
func TestNewValues(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.age = 0
	c.expect(applies("a b c")...)
	c.after(time.Hour)
	c.vanish("a", "b", "c")
	c.appear("d", "e", "f")
	c.expect(append(each("lost", "a b c"), applies("d e f")...)...)
	c.after(3 * time.Hour)
	c.expect()
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")

	c = newCluster(t, "a", "b", "c")
	c.age = 0
	c.expect(applies("a b c")...)
	c.after(time.Hour)
	c.vanish("a")
	c.objects["web-a"].Volumes = true
	c.expect("lost web-a")
	c.after(2 * time.Hour)
	c.appear("d", "e")
	c.expect("apply web-d", "apply web-e")
	c.vanish("b")
	c.after(3 * time.Hour)
	c.expect("lost web-b")
	c.after(4 * time.Hour)
	c.expect("delete web-b")
}

// TestReleaseOfOneValue: the annotation lifts the hold for exactly the values that it names, and
// grace still runs.
func TestReleaseOfOneValue(t *testing.T) {
	c := running(t, "a b c")
	c.vanish("a", "b", "c")
	c.expect(each("lost", "a b c")...)
	c.release("b")
	c.grid.Annotations[v1.AnnotationAllowRemoval] += ", *"
	c.expect()
	check(t, "looks again after", c.recheck, 5*time.Minute)
	c.after(5 * time.Minute)
	c.expect("delete web-b")
	check(t, "objects", c.names(), []string{"web-a", "web-c"})
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
}

func TestGrace(t *testing.T) {
	hour, never := time.Hour, time.Duration(-1)
	for _, test := range []struct {
		name                string
		child, grid         string // annotations; "": absent
		volumes             bool
		flag                time.Duration
		release             bool
		want                time.Duration // negative: never
		says                string
		deletedWithoutClock bool
	}{
		{name: "the flag", flag: hour, want: hour},
		{name: "the Grid before the flag", grid: "10m", flag: hour, want: 10 * time.Minute},
		{name: "the child before the Grid", child: "1m", grid: "10m", flag: hour, want: time.Minute},
		{name: "0s behaves as SuperEdge", grid: "0s", flag: hour, want: 0, deletedWithoutClock: true},
		{name: "the flag is never", flag: never, want: never, says: "--unit-removal-grace"},
		{name: "the Grid says never", grid: "never", flag: hour, want: never, says: `superedge.io/unit-removal-grace of the StatefulSetGrid is "never"`},
		{name: "the child alone says never", child: "never", grid: "0s", want: never, says: "of the StatefulSet is"},
		{name: "no unit", grid: "5", flag: hour, want: never, says: "which is not a duration such as 5m"},
		{name: "negative", child: "-5m", flag: hour, want: never, says: "which is not a duration"},
		{name: "empty", child: "", grid: " ", flag: hour, want: never, says: "which is not a duration"},
		{name: "volumes (B-14)", volumes: true, flag: hour, want: never, says: "volumeClaimTemplates"},
		{name: "volumes, but the Grid says otherwise", volumes: true, grid: "10m", want: 10 * time.Minute},
		{name: "volumes, but the child says otherwise", volumes: true, child: "10m", want: 10 * time.Minute},
		{name: "released from volumes: the flag's grace", volumes: true, flag: hour, release: true, want: hour},
		{name: "released from an unreadable one: the Grid's", child: "x", grid: "2m", flag: hour, release: true, want: 2 * time.Minute},
		{name: "released from nothing but never", grid: "never", flag: never, release: true, want: 5 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, "a", "b")
			c.grid.Kind, c.grace = StatefulSetGrid, test.flag
			if test.volumes {
				c.grid.Template = []byte(strings.Replace(deployment, "{", `{"volumeClaimTemplates": [{}],`, 1))
			}
			c.expect(applies("a b")...)
			if test.child != "" {
				set(&c.objects["web-a"].Annotations, v1.AnnotationRemovalGrace, test.child)
			}
			if test.grid != "" {
				c.grid.Annotations[v1.AnnotationRemovalGrace] = test.grid
			}
			c.vanish("a")
			if test.deletedWithoutClock {
				c.expect("delete web-a")
				return
			}
			c.expect("lost web-a")
			if test.release {
				c.release("a")
				c.expect()
			}
			if test.want < 0 {
				c.after(10000 * time.Hour)
				c.expect()
				contains(t, c.row("a").Message, test.says, "add a@2026-03-01T10:00:00Z to the Grid's annotation superedge.io/allow-unit-removal")
				return
			}
			check(t, "looks again after", c.recheck, test.want)
			c.after(test.want - time.Second)
			c.expect()
			c.after(test.want)
			c.expect("delete web-a")
		})
	}
}

// TestLostChildIsFrozen: it is not updated, not repaired, not given up.
func TestLostChildIsFrozen(t *testing.T) {
	c := running(t, "a b")
	c.vanish("a")
	c.expect("lost web-a")
	c.seize("web-a", "spec", "replicas")
	c.grid.Template = []byte(strings.Replace(deployment, "echo:1", "echo:2", 1))
	c.expect("apply web-b")
}

// TestUnusableTemplateIsNotDeleted, even where its removal is allowed.
func TestUnusableTemplateIsNotDeleted(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.grace = 0
	c.expect(applies("a b")...)
	c.grid.Templates = map[string]string{"a": "gone"}
	c.expect()
	check(t, "reason", c.row("a").Reason, ReasonMissingTemplate)
	c.vanish("a")
	c.expect("lost web-a")
	c.release("a")
	c.after(time.Hour)
	c.expect()
	contains(t, c.row("a").Message, "no usable template", `spec.templatePool["gone"] is missing`)
	c.grid.Templates = nil
	c.expect("delete web-a")
}

// TestUnreadableClock: an unreadable clock starts again, and nothing is deleted because of it.
func TestUnreadableClock(t *testing.T) {
	c := running(t, "a b")
	c.vanish("a")
	set(&c.objects["web-a"].Annotations, v1.AnnotationLostAt, "yesterday")
	c.after(time.Hour)
	c.expect("lost web-a")
	check(t, "looks again after", c.recheck, 5*time.Minute)
}

// TestClockIsNotCutByRounding: RFC 3339 has whole seconds.
func TestClockIsNotCutByRounding(t *testing.T) {
	c := running(t, "a b")
	c.vanish("a")
	c.after(900 * time.Millisecond)
	c.expect("lost web-a")
	c.after(5*time.Minute + 899*time.Millisecond)
	c.expect()
	c.after(5*time.Minute + time.Second)
	c.expect("delete web-a")
}

// TestGradualLoss: one unit after the other goes; the hold counts what is lost now, not what was.
func TestGradualLoss(t *testing.T) {
	c := running(t, "a b c")
	c.vanish("a")
	c.expect("lost web-a")
	c.after(5 * time.Minute)
	c.expect("delete web-a")
	c.vanish("b")
	c.expect("lost web-b")
	c.after(10 * time.Minute)
	c.expect("delete web-b")
	check(t, "objects", c.names(), []string{"web-c"})
}

// TestChildBeingDeleted is left alone, lost or not, and still counts among the units.
func TestChildBeingDeleted(t *testing.T) {
	c := running(t, "a b c")
	c.vanish("a", "b")
	c.objects["web-a"].Deleting = true
	c.objects["web-c"].Deleting = true
	c.restart()
	c.expect("lost web-b")
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
	contains(t, c.row("c").Message, "is being deleted, and is created again")
	delete(c.objects, "web-c")
	if got := c.reconcile(); !slices.Equal(got, []string{"apply web-c"}) {
		t.Errorf("got %q", got)
	}
}

// TestNoGraceIsHeldToo: 0s behaves as SuperEdge for a unit that goes, not for most of them at once.
func TestNoGraceIsHeldToo(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.grid.Annotations[v1.AnnotationRemovalGrace] = "0s"
	c.expect(applies("a b")...)
	c.vanish("a", "b")
	c.expect(each("lost", "a b")...)
	c.release("a")
	c.expect("delete web-a")
}

// TestHoldOutlivesRelease: the hold ends when 2k ≤ n, so the release of one of two does not give up
// the other, which alone would not have been held; nor do a restart and units that come later.
func TestHoldOutlivesRelease(t *testing.T) {
	c := running(t, "a b")
	c.vanish("a", "b")
	c.expect(each("lost", "a b")...)
	c.release("a")
	c.after(time.Hour)
	c.expect("delete web-a")
	c.restart()
	c.after(24 * time.Hour)
	c.expect()
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
	c.appear("c", "d")
	c.expect(applies("c d")...)
	c.release("b")
	c.expect("delete web-b")
}

// TestHoldCountsChildren: n is the number of units in which the Grid has children. A unit with a
// foreign object does not count.
func TestHoldCountsChildren(t *testing.T) {
	c := newCluster(t, "a", "b", "c", "d")
	c.foreign(Live{Name: "web-d"})
	c.expect(applies("a b c")...)
	c.vanish("a", "b")
	c.expect(each("lost", "a b")...)
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
	contains(t, c.message(v1.ConditionDeletionHeld), "2 of 3 units")
}

// TestOrderOfSteps: what is lost is written down first, what adds comes before what removes, and
// what can be taken back before what cannot.
func TestOrderOfSteps(t *testing.T) {
	c := running(t, "a b c d")
	c.vanish("a")
	c.expect("lost web-a")
	c.after(5 * time.Minute)
	c.vanish("b")
	c.appear("e")
	c.foreign(Live{Name: "stray", Owner: "web-uid"})
	c.grid.AutoPrune, c.grid.Pool = true, map[string][]byte{"unused": nil}
	c.misplaced = []Pod{misplaced("web-c-1", "web-c", 0)}
	c.expect("lost web-b", "apply web-e", "release stray", "prune unused", "delete web-a", "evict web-c-1")
}
