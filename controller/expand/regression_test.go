package expand

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Faults of SuperEdge that have no better place: docs/superedge-faults.md says what they are.

// TestB03NodeSelector: a template's own nodeSelector × 3 units. Each child has its own, and after
// two syncs the Grid is what the user wrote (B-04, B-11). testdata/children/node-selector.txtar
// shows the whole objects.
func TestB03NodeSelector(t *testing.T) {
	c := newCluster(t, "z1", "z2", "z3")
	c.grid.Labels = map[string]string{"team": "shop"}
	c.grid.Template = []byte(strings.Replace(deployment, `"containers"`, `"nodeSelector": {"disk": "ssd"}, "containers"`, 1))
	before, _ := json.Marshal(c.grid)
	c.expect("apply web-z1", "apply web-z2", "apply web-z3")
	for _, z := range []string{"z1", "z2", "z3"} {
		check(t, z, c.objects["web-"+z].NodeSelector, MakePairs(map[string]string{"disk": "ssd", "zone": z}))
	}
	c.restart()
	c.reconcile()
	after, _ := json.Marshal(c.grid)
	if d := cmp.Diff(string(before), string(after)); d != "" {
		t.Errorf("the Grid changed:\n%s", d)
	}
}

// TestB02ReplicasNil: 1, and no crash at the second sync.
func TestB02ReplicasNil(t *testing.T) {
	c := newCluster(t, "a")
	c.grid.Template = []byte(strings.Replace(deployment, `"replicas": 2`, `"replicas": null`, 1))
	c.expect("apply web-a")
	check(t, "replicas", *c.objects["web-a"].Replicas, 1)
	c.restart()
	c.expect()
}

// TestB06MissingPoolEntry: only that unit reports an error.
func TestB06MissingPoolEntry(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.grid.Templates = map[string]string{"b": "gone"}
	c.expect("apply web-a", "apply web-c")
	check(t, "reason", c.row("b").Reason, ReasonMissingTemplate)
	check(t, "reason", c.row("a").Reason, "")
}

// TestB05FiveNodesOneUnit: one create.
func TestB05FiveNodesOneUnit(t *testing.T) {
	c := newCluster(t, "a", "a", "a", "a", "a")
	c.expect("apply web-a")
	check(t, "nodes", c.row("a").Nodes, 5)
}

// TestNamesThatBeginAlike: the value begins with the Grid's name or the other way round; and the
// StatefulSetGrid web leaves foo-web's children alone, as foo does.
func TestNamesThatBeginAlike(t *testing.T) {
	c := newCluster(t, "zone")
	c.grid.Kind, c.grid.Name = StatefulSetGrid, "zone-app"
	c.expect("apply zone-app-zone")
	check(t, "unit", ValueOf(c.grid, *c.objects["zone-app-zone"]), "zone")

	for _, name := range []string{"web", "foo"} {
		c := newCluster(t, "b")
		c.grid.Kind, c.grid.Name = StatefulSetGrid, name
		c.foreign(Live{Name: "foo-web-0", Owner: "foo-web-uid", Labels: MakePairs(map[string]string{"superedge.io/grid-selector": "foo-web"})})
		c.expect("apply " + name + "-b")
		check(t, "owner", c.objects["foo-web-0"].Owner, "foo-web-uid")
	}
}

// TestB08Names: values that are legal labels but no legal names, and names that are too long, get
// legal ones, and the exact value is on the child.
func TestB08Names(t *testing.T) {
	values := []string{"Zone_1", "zone.1", strings.Repeat("x", 63)}
	c := newCluster(t, values...)
	c.grid.Kind, c.grid.Name = StatefulSetGrid, strings.Repeat("long-", 20)+"name"
	c.reconcile()
	check(t, "objects", len(c.objects), 3)
	for name, l := range c.objects {
		if value := ValueOf(c.grid, *l); !slices.Contains(values, value) || len(name) > 52 {
			t.Errorf("%s is of unit %q", name, value)
		}
	}
	c.restart()
	c.vanish("Zone_1")
	c.reconcile()
	c.after(5 * time.Minute)
	c.reconcile()
	check(t, "objects after the loss of a unit", len(c.objects), 2)
}

// TestB09KeyWithPrefix: a gridUniqKey that is no label value works.
func TestB09KeyWithPrefix(t *testing.T) {
	c := newCluster(t, "eu-1", "eu-2")
	c.grid.Key = "topology.kubernetes.io/zone"
	c.expect("apply web-eu-1", "apply web-eu-2")
	check(t, "nodeSelector", c.objects["web-eu-1"].NodeSelector, MakePairs(map[string]string{"topology.kubernetes.io/zone": "eu-1"}))
	c.vanish("eu-1")
	c.expect("lost web-eu-1")
	check(t, "phase", c.row("eu-1").Reason, ReasonUnitLost)
}

// TestB11SpecIsNotWritten: no step writes the Grid, but for Prune where the user asks for it.
func TestB11SpecIsNotWritten(t *testing.T) {
	c := newCanary(t)
	c.grid.Default, c.grid.Pool["unused"] = "", withReplicas(9)
	for _, s := range Decide(c.observe([]string{"deploymentgrid-demo-zone1", "deploymentgrid-demo-zone2", "deploymentgrid-demo-zone3"})).Steps {
		if _, ok := s.(Apply); !ok {
			t.Errorf("step %T", s)
		}
	}
}

// TestB14DeletedAtOnce: see loss_test.go. Here, a Node that is created again within the grace, by
// the cloud's autoscaler or because a site returns, costs no child.
func TestB14DeletedAtOnce(t *testing.T) {
	c := newCluster(t, "a")
	c.expect("apply web-a")
	before := c.objects["web-a"].UID
	c.vanish("a")
	c.expect("lost web-a")
	c.after(time.Minute)
	c.appear("a")
	c.expect("found web-a")
	check(t, "UID", c.objects["web-a"].UID, before)
}

// BenchmarkStatus is the status of a Grid of 40 units at rest.
func BenchmarkStatus(b *testing.B) {
	c := newCluster(b)
	for i := range 40 {
		c.appear(fmt.Sprintf("unit-%d", i))
	}
	c.reconcile()
	observed := c.observe(nil)
	for b.Loop() {
		Status(observed)
	}
}

// BenchmarkDecide is one decision for a Grid of 40 units at rest.
func BenchmarkDecide(b *testing.B) {
	c := newCluster(b)
	for i := range 40 {
		c.appear(fmt.Sprintf("unit-%d", i))
	}
	c.reconcile()
	observed := c.observe(nil)
	for b.Loop() {
		if len(Decide(observed).Steps) > 0 {
			b.Fatal("not at rest")
		}
	}
}
