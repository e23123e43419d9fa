package expand

import (
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
)

// TestOneReplacementAtATime: the next unit is replaced when the last one is ready.
func TestOneReplacementAtATime(t *testing.T) {
	c := newCluster(t, "a", "b", "c")
	c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
	c.expect(applies("a b c")...)
	c.grid.Template = withReplicas(3)
	c.refuse = c.immutableBut(3)
	check(t, "steps", c.reconcile(), []string{"refused web-a", "refused web-b", "refused web-c"})
	for _, name := range []string{"a", "b", "c"} {
		check(t, "steps", c.reconcile(), []string{"replace web-" + name})
		check(t, "steps", c.reconcile(), []string{"apply web-" + name})
		if name == "c" {
			break
		}
		o := c.objects["web-"+name]
		o.Available = 0 // its Pods do not start
		c.expect()
		contains(t, c.row("c").Message, "it is replaced when unit "+name+" is ready")
		o.Stalled = "no image"
		c.expect()
		c.restart() // nor does another controller go on
		for _, step := range c.reconcile() {
			check(t, "only refused again", strings.HasPrefix(step, "refused "), true)
		}
		c.expect()
		o.Stalled, o.Available = "", 3
	}
	c.refuse = nil
	c.expect()
	check(t, "Ready", c.condition(v1.ConditionReady), "True UnitsReady")
}

// immutableBut refuses every change of a child but one that has so many replicas already.
func (c *cluster) immutableBut(replicas int32) func(Apply) *Problem {
	return func(a Apply) *Problem {
		if a.UID == "" || *c.objects[a.Child.Name].Replicas == replicas {
			return nil
		}
		return Immutable("spec.selector")
	}
}

// TestNoReplacementOffline: a unit without a ready Node keeps its child until it is back, and does
// not keep others from being replaced.
func TestNoReplacementOffline(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
	c.expect(applies("a b")...)
	c.grid.Template = withReplicas(3)
	c.refuse = c.immutableBut(3)
	c.ready = map[string]int{"b": 1}
	check(t, "steps", c.reconcile(), []string{"refused web-a", "refused web-b"})
	check(t, "steps", c.reconcile(), []string{"replace web-b"})
	c.expect("apply web-b")
	contains(t, c.row("a").Message, "it is replaced when a Node of the unit is ready")
	c.ready = nil
	check(t, "steps", c.reconcile(), []string{"replace web-a"})
}

// TestVolumeClaimsGoToo: claims that are deleted with a StatefulSet are mentioned.
func TestVolumeClaimsGoToo(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.grid.Kind = StatefulSetGrid
	c.grid.Template = []byte(`{"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}, ` + deployment[1:])
	c.expect(applies("a b")...)
	contains(t, c.message(v1.ConditionReady), "the volume claims of 2 units go with their StatefulSets: a, b", "whenDeleted to Retain")
	c.grid.Template = []byte(deployment)
	c.expect(applies("a b")...)
	check(t, "message", c.message(v1.ConditionReady), "all 2 units with Nodes are ready")
}
