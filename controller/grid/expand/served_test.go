package expand

import (
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
)

// TestMislabelledNode: a Node that had three wrong labels leaves three children that no Pod was
// ever ready in. They are deleted after the grace, without a place in the budget, though with them
// most units are lost; a unit that has served stays held.
func TestMislabelledNode(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.budget = removal.Budget{}
	c.expect(applies("a b")...)
	check(t, "served", c.row("a").Served, "<nil>")
	c.unready = true
	for i, wrong := range []string{"x", "y", "z"} {
		c.appear(wrong)
		c.after(time.Duration(i) * time.Second)
		c.expect("apply web-" + wrong)
		check(t, "served", c.row(wrong).Served == nil, false)
		c.vanish(wrong)
		c.expect("lost web-" + wrong)
	}
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "False MostUnitsPresent")
	c.vanish("a", "b")
	c.expect(each("lost", "a b")...)
	contains(t, c.row("x").Message, "never had a ready Pod")
	c.after(time.Hour)
	c.restart()
	c.expect()
	c.after(2 * time.Hour)
	c.expect(each("delete", "x y z")...)
	check(t, "removals", len(c.status.Removals), 0)
	check(t, "DeletionHeld", c.condition(v1.ConditionDeletionHeld), "True MostUnitsLost")
}

// TestServed: which units count as unserved, by what the status before and the child say.
func TestServed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*cluster)
		served bool
	}{
		"a new child":             {func(*cluster) {}, false},
		"the controller restarts": {func(c *cluster) { c.restart() }, false},
		"a Pod is ready":          {func(c *cluster) { c.objects["web-a"].ReadyReplicas = 1 }, true},
		"it has no replicas, and is complete": {func(c *cluster) {
			c.objects["web-a"].Replicas, c.objects["web-a"].UpdatedReplicas, c.objects["web-a"].StatusReplicas = new(int32), 0, 0
		}, true},
		"a rollout was complete": {func(c *cluster) { c.objects["web-a"].Completed = true }, true},
		"a Pod was ready, and is not now": {func(c *cluster) {
			c.objects["web-a"].ReadyReplicas = 1
			c.reconcile()
			c.objects["web-a"].ReadyReplicas = 0
		}, true},
		"the status has no such field":            {func(c *cluster) { c.restart(); c.status.Units[0].Served = nil }, true},
		"the status has no rows, after a restart": {func(c *cluster) { c.restart(); c.status.Units = nil }, true},
		"the row was left out":                    {func(c *cluster) { c.reported.Units, c.reported.OmittedUnits = nil, 1 }, true},
		"another cluster's row":                   {func(c *cluster) { c.restart(); c.status.Units[0].Cluster = "west" }, true},
		"the child is deleted by another":         {func(c *cluster) { delete(c.objects, "web-a") }, false},
		"a child that served is deleted": {func(c *cluster) {
			c.objects["web-a"].ReadyReplicas = 1
			c.reconcile()
			delete(c.objects, "web-a")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a")
			c.unready = true
			c.expect("apply web-a")
			test.change(c)
			c.reconcile()
			c.vanish("a")
			c.reconcile()
			check(t, "served", c.row("a").Served == nil, test.served)
		})
	}
}

// TestUnwatched: of a child that does not say itself that it had ready Pods, a status says so only
// while the process that created it watches it.
func TestUnwatched(t *testing.T) {
	const deadline = `{"progressDeadlineSeconds": `
	serves := func(c *cluster) {
		c.objects["web-a"].ReadyReplicas = 1
		c.reconcile()
		c.objects["web-a"].ReadyReplicas = 0
	}
	for name, test := range map[string]struct {
		kind     Kind
		template string // of what deployment begins with
		change   func(*cluster)
		served   bool
	}{
		"a StatefulSet":                   {StatefulSetGrid, "{", func(*cluster) {}, false},
		"after an edit":                   {StatefulSetGrid, "{", func(c *cluster) { c.grid.Labels = map[string]string{"a": "b"}; c.reconcile() }, false},
		"after a restart":                 {StatefulSetGrid, "{", (*cluster).restart, true},
		"no status can be written":        {StatefulSetGrid, "{", func(c *cluster) { old := c.status; serves(c); c.status = old }, true},
		"of the first one too":            {StatefulSetGrid, "{", func(c *cluster) { serves(c); c.status = v1.WorkloadGridStatus{} }, true},
		"a Deployment, after a restart":   {DeploymentGrid, deadline + "600,", (*cluster).restart, false},
		"a Deployment without a deadline": {DeploymentGrid, deadline + "2147483647,", (*cluster).restart, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "a")
			c.unready, c.grid.Kind, c.grid.Template = true, test.kind, []byte(strings.Replace(deployment, "{", test.template, 1))
			c.expect("apply web-a")
			check(t, "served", c.row("a").Served == nil, false)
			test.change(c)
			c.reconcile()
			check(t, "served", c.row("a").Served == nil, test.served)
			c.reconcile()
			check(t, "served", c.row("a").Served == nil, test.served)
		})
	}
}
