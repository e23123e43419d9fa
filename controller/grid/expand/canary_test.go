package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
)

func withReplicas(n int) []byte {
	return []byte(strings.Replace(deployment, `"replicas": 2`, fmt.Sprintf(`"replicas": %d`, n), 1))
}

// newCanary is the manual's: the default is test1, zone2 has test2.
func newCanary(t *testing.T) *cluster {
	c := newCluster(t, "zone1", "zone2", "zone3")
	c.grid.Name, c.grid.UID = "deploymentgrid-demo", "demo-uid"
	c.grid.Template = withReplicas(1)
	c.grid.Pool = map[string][]byte{"test1": withReplicas(2), "test2": withReplicas(3)}
	c.grid.Default = "test1"
	c.grid.Templates = map[string]string{"zone1": "test1", "zone2": "test2"}
	return c
}

func TestCanary(t *testing.T) {
	c := newCanary(t)
	c.expect("apply deploymentgrid-demo-zone1", "apply deploymentgrid-demo-zone2", "apply deploymentgrid-demo-zone3")
	for i, want := range []int32{2, 3, 2} {
		value := fmt.Sprintf("zone%d", i+1)
		check(t, value, *c.objects["deploymentgrid-demo-"+value].Replicas, want)
	}
	check(t, "template", c.row("zone2").Template, "test2")
	check(t, "template of the default", c.row("zone3").Template, "test1")
	states := States(c.observe(nil))
	check(t, "states", slices.Sorted(maps.Keys(states)), []string{"zone1", "zone2", "zone3"})
	check(t, "state", string(states["zone2"].JSON), `{"replicas":3,"readyReplicas":3}`)
	check(t, "unused", c.status.UnusedTemplates, []string{})

	c.grid.Templates = nil // the canary is over
	c.expect("apply deploymentgrid-demo-zone2")
	check(t, "unused", c.status.UnusedTemplates, []string{"test2"})
}

// TestB06MissingTemplate: only the unit concerned has a problem.
func TestB06MissingTemplate(t *testing.T) {
	c := newCanary(t)
	delete(c.grid.Pool, "test2")
	check(t, "live reads", Decide(c.observe(nil)).Look, []string{"deploymentgrid-demo-zone1", "deploymentgrid-demo-zone3"})
	c.expect("apply deploymentgrid-demo-zone1", "apply deploymentgrid-demo-zone3")
	check(t, "reason", c.row("zone2").Reason, ReasonMissingTemplate)
	check(t, "first row", c.status.Units[0].Value, "zone2")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True UnitsFailed")
	contains(t, c.message(v1.ConditionDegraded), "1 of 3 units failed: zone2", `spec.templatePool["test2"] is missing`)
}

// TestFrozenWithoutTemplate: a child whose template is gone is neither updated nor repaired nor
// deleted.
func TestFrozenWithoutTemplate(t *testing.T) {
	c := newCanary(t)
	c.reconcile()
	delete(c.grid.Pool, "test2")
	c.seize("deploymentgrid-demo-zone2", "spec", "replicas")
	c.expect()
	check(t, "phase", c.row("zone2").Phase, v1.UnitFailed)
	check(t, "replicas", c.row("zone2").Replicas, 3)
}

// TestUnusedTemplates: what counts as used.
func TestUnusedTemplates(t *testing.T) {
	c := newCanary(t)
	c.grid.Pool = map[string][]byte{"test1": nil, "test2": nil, "other": nil, "default": nil, "nobody": nil}
	c.grid.Templates["a-unit-that-does-not-exist"] = "other"
	c.reconcile()
	check(t, "unused", c.status.UnusedTemplates, []string{"default", "nobody"})
	check(t, "pool", len(c.grid.Pool), 5)
}

// TestPrune: autoDeleteUnusedTemplate removes an entry once. What comes back is left, also after a
// restart, and reported without calling the Grid degraded (SuperEdge never stopped removing it).
func TestPrune(t *testing.T) {
	c := newCanary(t)
	c.reconcile()
	c.grid.AutoPrune = true
	c.grid.Pool["old"], c.grid.Pool["older"] = withReplicas(9), withReplicas(9)
	check(t, "steps", c.reconcile(), []string{"prune old,older"})
	check(t, "unused at once", c.status.UnusedTemplates, []string{})
	check(t, "message at once", c.message(v1.ConditionReady), "all 3 units with Nodes are ready")
	c.expect()
	check(t, "unused", c.status.UnusedTemplates, []string{})
	check(t, "pruned", c.status.PrunedTemplates, []string{"old", "older"})
	check(t, "left", slices.Sorted(maps.Keys(c.grid.Pool)), []string{"test1", "test2"})

	c.restart()
	c.reconcile()
	c.grid.Pool["old"] = withReplicas(9)
	c.expect()
	check(t, "unused", c.status.UnusedTemplates, []string{"old"})
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "False AsExpected")
	check(t, "Ready", c.condition(v1.ConditionReady), "True UnitsReady")
	contains(t, c.message(v1.ConditionReady), "unused templates were added again after their removal and are kept: old")

	c.grid.Templates["zone3"] = "old" // used again, and later no longer
	c.expect("apply deploymentgrid-demo-zone3")
	check(t, "pruned", c.status.PrunedTemplates, []string{"older"})
	delete(c.grid.Templates, "zone3")
	c.expect("apply deploymentgrid-demo-zone3", "prune old")

	c.grid.AutoPrune = false
	c.restart()
	c.reconcile()
	check(t, "pruned", c.status.PrunedTemplates, []string{})
}
