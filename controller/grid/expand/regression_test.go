package expand

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Faults of SuperEdge that have no better place: docs/superedge-faults.md says what they are.

// TestB02ReplicasNil: 1, and no crash at the second sync.
func TestB02ReplicasNil(t *testing.T) {
	for _, without := range []string{`"replicas": null,`, ""} {
		c := newCluster(t, "a")
		c.grid.Template = []byte(strings.Replace(deployment, `"replicas": 2,`, without, 1))
		c.expect("apply web-a")
		check(t, "replicas", *c.objects["web-a"].Replicas, 1)
		c.restart()
		c.expect()
	}
}

// TestNamesThatBeginAlike: the Grid's name begins with the value.
func TestNamesThatBeginAlike(t *testing.T) {
	c := newCluster(t, "zone")
	c.grid.Kind, c.grid.Name = StatefulSetGrid, "zone-app"
	c.expect("apply zone-app-zone")
	check(t, "unit", ValueOf(c.grid, *c.objects["zone-app-zone"]), "zone")
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
