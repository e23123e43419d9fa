package expand

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	"pgregory.net/rapid"
)

// TestPausedUnits: which units each value of the annotation pauses, and what the status says about
// values that are no unit's.
func TestPausedUnits(t *testing.T) {
	for _, test := range []struct {
		text    string
		applied string // of units a, b and true
		unknown string
	}{
		{"true", "", ""},
		{"false", "a b true", ""},
		{"a", "b true", ""},
		{" a , b ", "true", ""},
		{"a,true", "b", ""},
		{"a,nowhere", "b true", `"nowhere"`},
		{"True", "", `"True"`},
		{"yes", "", `"yes"`},
		{"aa,\nb b", "", `"b b"`},
		{"", "", `""`},
		{"a,", "b true", `""`},
	} {
		t.Run(test.text, func(t *testing.T) {
			c := newCluster(t, "a", "b", "true")
			c.grid.Annotations[v1.AnnotationPaused] = test.text
			c.expect(applies(test.applied)...)
			for _, value := range []string{"a", "b", "true"} {
				applied := slices.Contains(strings.Fields(test.applied), value)
				check(t, value+" is paused", c.row(value).Reason == ReasonPaused, !applied)
			}
			check(t, "Progressing is about it", c.condition(v1.ConditionProgressing) == "False Paused", test.text != "false")
			check(t, "Degraded", c.condition(v1.ConditionDegraded), "False AsExpected")
			if says := c.message(v1.ConditionProgressing); !strings.Contains(says, test.unknown) || test.unknown == "" && strings.Contains(says, "no unit has") {
				t.Errorf("Progressing says %q, want %s", says, test.unknown)
			}
		})
	}
}

// TestPause: what waits during a pause, and what follows it.
func TestPause(t *testing.T) {
	c := running(t, "a b c d e")
	c.grid.Annotations[v1.AnnotationPaused] = "a,c"
	c.grid.Template = []byte(`{"minReadySeconds": 1, ` + deployment[1:])
	c.misplaced = []Pod{misplaced("web-a-1", "web-a", 0), misplaced("web-b-1", "web-b", 0)}
	c.expect(applies("b d e")...)
	check(t, "phase with a change that waits", c.row("a").Phase, v1.UnitProgressing)
	contains(t, c.message(v1.ConditionProgressing), "2 of 5 units", "a, c", v1.AnnotationPaused)
	c.vanish("c")
	c.expect("lost web-c")
	c.after(time.Hour)
	c.expect("evict web-b-1")
	contains(t, c.row("c").Message, "nothing is deleted", v1.AnnotationPaused)
	c.restart()
	c.expect()
	check(t, "phase with a change that waits, after a restart", c.row("a").Phase, v1.UnitProgressing)
	c.appear("c")
	c.expect("found web-c")
	c.vanish("c")
	c.expect("lost web-c")
	delete(c.grid.Annotations, v1.AnnotationPaused)
	c.expect("apply web-a", "evict web-a-1")
	c.after(2 * time.Hour)
	c.expect("delete web-c")
}

// TestPauseOfEverything: nothing is adopted, released, replaced or pruned either.
func TestPauseOfEverything(t *testing.T) {
	c := running(t, "a b")
	c.grid.Annotations[v1.AnnotationPaused], c.grid.Annotations[v1.AnnotationOnImmutableChange] = "true", "Recreate"
	c.grid.AutoPrune, c.grid.Pool = true, map[string][]byte{"unused": []byte(deployment)}
	c.grid.Templates = map[string]string{"b": "gone"}
	c.foreign(Live{Name: "web-z", Owner: c.grid.UID})
	c.objects["web-a"].Owner = ""
	c.expect()
	check(t, "phase of a unit without template", c.row("b").Phase+" "+v1.UnitPhase(c.row("b").Reason), "Progressing Paused")
	contains(t, c.row("b").Message, "gone")
	c.grid.Annotations[v1.AnnotationPaused] = "false"
	c.expect("adopt web-a", "release web-z", "prune unused")
}

// TestPausedService: a ServiceGrid has no units, so any value but false pauses it.
func TestPausedService(t *testing.T) {
	for _, text := range []string{"true", "yes", "a"} {
		c := newCluster(t, "a")
		c.grid.Kind, c.grid.Template = ServiceGrid, []byte(`{"ports": [{"port": 80}]}`)
		c.grid.Annotations[v1.AnnotationPaused] = text
		observed := c.observe([]string{"web-svc"})
		if plan := Decide(observed); len(plan.Steps) > 0 || len(plan.Look) > 0 {
			t.Errorf("%s: %+v", text, plan)
		}
		s := ServiceStatus(observed)
		c.status.Conditions = s.Conditions
		check(t, text+": Progressing", c.condition(v1.ConditionProgressing), "False Paused")
		check(t, text+": Ready", c.condition(v1.ConditionReady), "False Paused")
		check(t, text+": Degraded", c.condition(v1.ConditionDegraded), "False AsExpected")
		if found := Children(c.grid, nil, nil)[0].Object.GetAnnotations()[v1.AnnotationPaused]; found != "" {
			t.Errorf("the Service inherits %s", found)
		}
	}
}

// TestChildPaused: kubectl rollout pause of a child is named, with the command that ends it, unless
// the template asks for it.
func TestChildPaused(t *testing.T) {
	const command = "kubectl rollout resume -n default deployment/web-a"
	for _, test := range []struct {
		name, template, reason string
		updated                int32
		command                bool
	}{
		{"in a rollout", deployment, "ChildPaused", 1, true},
		{"nothing to roll out", deployment, "", 2, false},
		{"by the template", strings.Replace(deployment, "{", `{"paused": true, `, 1), "RollingOut", 1, false},
	} {
		c := newCluster(t, "a")
		c.grid.Template = []byte(test.template)
		c.reconcile()
		c.objects["web-a"].Paused, c.objects["web-a"].UpdatedReplicas = true, test.updated
		c.objects["web-a"].StatusReplicas = test.updated
		c.reconcile()
		row := c.row("a")
		check(t, test.name, row.Reason, test.reason)
		check(t, test.name+": command", strings.Contains(row.Message, command), test.command)
		check(t, test.name+": on a hub", reasonOf(row.Reason), test.reason)
	}
}

// TestNothingHappensInAPausedUnit, whatever happens around it: see TestLife for what may.
func TestNothingHappensInAPausedUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLife(t)
		text := rapid.SampledFrom([]string{"true", "a", "a, b", "treu"}).Draw(t, "paused")
		l.grid.Annotations[v1.AnnotationPaused] = text
		actions := l.actions()
		delete(actions, "keyChanges") // without a unit of the name all are paused
		actions["annotated"] = func(t *rapid.T) {
			l.annotated(t)
			l.grid.Annotations[v1.AnnotationPaused] = text
		}
		actions[""] = func(t *rapid.T) {
			for _, s := range Decide(l.observe(Decide(l.observe(nil)).Look)).Steps {
				_, lost := s.(MarkLost)
				_, found := s.(MarkFound)
				if name := childOf(s); !lost && !found && (name == "web-a" || text == "true" || text == "treu") {
					t.Errorf("%T of %q", s, name)
				}
			}
			l.reconcile()
		}
		t.Repeat(actions)
	})
}

func childOf(s Step) string {
	switch s := s.(type) {
	case Apply:
		return s.Child.Name
	case MarkLost:
		return s.Name
	case MarkFound:
		return s.Name
	case Delete:
		return s.Name
	case Release:
		return s.Name
	case Replace:
		return s.Name
	case Evict:
		return s.Pod.Child
	}
	return ""
}

// TestPausedOffline: a unit without a ready Node is offline, paused or not.
func TestPausedOffline(t *testing.T) {
	c := running(t, "a b")
	c.ready = map[string]int{"b": 1}
	c.objects["web-a"].Stalled = "deadline exceeded"
	c.grid.Annotations[v1.AnnotationPaused] = "true"
	c.reconcile()
	check(t, "phase", c.row("a").Phase, v1.UnitOffline)
	contains(t, c.row("a").Message, "its Node is not ready", "nothing is changed while the Grid's annotation")
	check(t, "Ready", c.condition(v1.ConditionReady), "True UnitsReady")
	check(t, "offline units", c.status.OfflineUnits, 1)
}

// TestLongPause: an annotation as long as the API server takes it is read once for each unit and
// each word.
func TestLongPause(t *testing.T) {
	c := newCluster(t)
	for i := range 2000 {
		c.appear(fmt.Sprintf("u%04d", i))
	}
	c.grid.Annotations[v1.AnnotationPaused] = strings.Repeat("u1999,", 20000) + strings.Repeat("a,", 60000)
	c.reconcile()
	check(t, "Progressing says", c.message(v1.ConditionProgressing)[:48], "nothing is changed in 1 of 2000 units while the ")
}
