package expand

import (
	"slices"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func ownLabels() map[string]string {
	return map[string]string{v1.LabelSelector: "web", v1.LabelKey: "zone"}
}

// TestOwnership: each line puts one object into a cluster with the unit a, and names its owner
// afterwards. What SuperEdge called released it deleted; nothing is deleted here.
func TestOwnership(t *testing.T) {
	const us, them = types.UID("web-uid"), types.UID("other-uid")
	for _, test := range []struct {
		name    string
		object  Live
		want    []string
		reason  string // of the row of unit a
		handled string // who owns the object afterwards; "" means no owner
	}{
		{"obj-owned-by-someone, name wanted", Live{Name: "web-a", Owner: them, Labels: MakePairs(ownLabels())},
			nil, ReasonNameCollision, "other-uid"},
		{"obj-owned-by-someone, name not wanted", Live{Name: "web-x", Owner: them, Labels: MakePairs(ownLabels())},
			[]string{"apply web-a"}, "", "other-uid"},
		{"obj-owned-not-match, name wanted: relabelled", Live{Name: "web-a", Owner: us, Labels: MakePairs(map[string]string{"a": "b"})},
			[]string{"apply web-a"}, "", "web-uid"},
		{"obj-owned-not-match, name not wanted: released", Live{Name: "web-x", Owner: us, Labels: MakePairs(map[string]string{"a": "b"})},
			[]string{"apply web-a", "release web-x"}, "", ""},
		{"obj-owned", Live{Name: "web-a", Owner: us, Labels: MakePairs(ownLabels())},
			[]string{"apply web-a"}, "", "web-uid"},
		{"obj-owned, of no name of ours: released", Live{Name: "database", Owner: us, Labels: MakePairs(ownLabels())},
			[]string{"apply web-a", "release database"}, "", ""},
		{"obj-owned-not-match, being deleted: nothing to release", Live{Name: "web-x", Owner: us, Deleting: true},
			[]string{"apply web-a"}, "", "web-uid"},
		{"obj-orphan-delete, name wanted: waits", Live{Name: "web-a", Deleting: true, Labels: MakePairs(ownLabels())},
			nil, "Deleting", ""},
		{"obj-orphan-delete, name not wanted", Live{Name: "web-x", Deleting: true, Labels: MakePairs(ownLabels())},
			[]string{"apply web-a"}, "", ""},
		{"obj-adopt", Live{Name: "web-a", Labels: MakePairs(ownLabels())},
			[]string{"adopt web-a"}, "", "web-uid"},
		{"orphan of no wanted name: SuperEdge adopted and deleted it", Live{Name: "web-x", Labels: MakePairs(ownLabels())},
			[]string{"apply web-a"}, "", ""},
		{"a user's object without the label", Live{Name: "web-a"},
			nil, ReasonNameCollision, ""},
		{"a user's object with another Grid's label", Live{Name: "web-a", Labels: MakePairs(map[string]string{v1.LabelSelector: "shop"})},
			nil, ReasonNameCollision, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, "a")
			object := c.foreign(test.object)
			c.expect(test.want...)
			check(t, "owner", object.Owner, test.handled)
			check(t, "reason", c.row("a").Reason, test.reason)
			if test.handled == "web-uid" && object.Name == "web-a" {
				check(t, "label", object.Labels.Get(v1.LabelSelector), "web")
			}
		})
	}
}

// TestAdoption: the apply of an orphan says so, which makes the reconciler read the Grid live
// first; it holds the UID, and the controller reference that SuperEdge sets too.
func TestAdoption(t *testing.T) {
	c := newCluster(t, "a")
	orphan := c.foreign(Live{Name: "web-a", Labels: MakePairs(ownLabels())})
	apply := Decide(c.observe(nil)).Steps[0].(Apply)
	if !apply.Adopt || apply.UID != orphan.UID {
		t.Errorf("apply with Adopt %v and UID %q", apply.Adopt, apply.UID)
	}
	owner := apply.Child.Object.GetOwnerReferences()[0]
	if owner.APIVersion != "superedge.io/v1" || owner.Kind != "DeploymentGrid" || owner.Name != "web" || owner.UID != "web-uid" ||
		!*owner.Controller || !*owner.BlockOwnerDeletion {
		t.Errorf("owner reference %+v", owner)
	}
}

// TestOrphanWithClock: an adopted child that was lost under its last Grid is found at once.
func TestOrphanWithClock(t *testing.T) {
	c := newCluster(t, "a")
	c.foreign(Live{Name: "web-a", Labels: MakePairs(ownLabels()), Annotations: MakePairs(map[string]string{v1.AnnotationLostAt: "2026-03-01T09:00:00Z"})})
	if got := c.reconcile(); !slices.Equal(got, []string{"adopt web-a"}) {
		t.Errorf("got %q", got)
	}
	c.expect("found web-a")
}

// TestGridInFile: a Grid that no API server has seen has no UID, like the owner of an object
// without a controller.
func TestGridInFile(t *testing.T) {
	g := FromDeploymentGrid(&v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	check(t, "a user's object", g.ownershipOf(&Live{Name: "web-a"}), foreign)
	now := metav1.Time{Time: start()}
	for _, g := range []Grid{
		FromDeploymentGrid(&v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}),
		FromStatefulSetGrid(&v1.StatefulSetGrid{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}),
		FromServiceGrid(&v1.ServiceGrid{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}),
	} {
		check(t, string(g.Kind)+" is being deleted", g.Deleting, true)
	}
}

// TestLook: the plan asks for names that were not read, and does everything else meanwhile.
func TestLook(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.foreign(Live{Name: "web-a", Owner: "web-uid", Labels: MakePairs(ownLabels())})
	plan := Decide(c.observe(nil))
	check(t, "look", plan.Look, []string{"web-b"})
	check(t, "steps", len(plan.Steps), 1)
	plan = Decide(c.observe(plan.Look))
	check(t, "look", plan.Look, []string{})
	check(t, "steps", len(plan.Steps), 2)
	check(t, "UID for a free name", plan.Steps[1].(Apply).UID, "")
}

// TestLiveReadFindsOurs: what the caches do not have yet may well be ours.
func TestLiveReadFindsOurs(t *testing.T) {
	c := running(t, "a")
	observed := c.observe([]string{"web-a"})
	observed.Children = nil
	if steps := Decide(observed).Steps; len(steps) > 0 {
		t.Errorf("steps %+v", steps)
	}
	check(t, "phase", Status(observed).Units[0].Phase, v1.UnitReady)
}

// TestB07NameCollision: a+b-c and a-b+c are both a-b-c. The second Grid says so on its unit, in
// words that tell what to do, and its other units are not stopped.
func TestB07NameCollision(t *testing.T) {
	c := newCluster(t, "b-c", "d")
	c.grid.Name, c.grid.UID = "a", "a-uid"
	c.foreign(Live{Name: "a-b-c", Owner: "a-b-uid", OwnerName: "DeploymentGrid/a-b", Labels: MakePairs(map[string]string{v1.LabelSelector: "a-b"})})
	c.expect("apply a-d")
	check(t, "phase", c.row("b-c").Phase, v1.UnitFailed)
	check(t, "reason", c.row("b-c").Reason, ReasonNameCollision)
	contains(t, c.row("b-c").Message, "Deployment a-b-c exists", "DeploymentGrid/a-b", "give the Grid another name")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "True UnitsFailed")
	delete(c.objects, "a-b-c")
	c.expect("apply a-b-c")
	check(t, "Degraded", c.condition(v1.ConditionDegraded), "False AsExpected")
}

// TestNameCollisionWithinGrid: a value that looks like another one's hashed name.
func TestNameCollisionWithinGrid(t *testing.T) {
	plain := Grid{Spec: gridspec.Spec{Kind: DeploymentGrid}, Name: "web"}.childName("Zone_1")[len("web-"):]
	c := newCluster(t, "Zone_1", plain)
	c.expect("apply web-" + plain)
	check(t, "phase", c.row("Zone_1").Phase, v1.UnitReady)
	check(t, "reason", c.row(plain).Reason, ReasonNameCollision)
	check(t, "replicas of the other's child", c.row(plain).Replicas, 0)
	check(t, "states", len(States(c.observe(nil))), 1)
	if child := Children(c.grid, []string{"Zone_1", plain}, nil)[1]; child.Object != nil {
		t.Error("a child with a problem has an object to apply")
	}
}

// TestValueOf: how the unit of a child is recognised.
func TestValueOf(t *testing.T) {
	g := Grid{Spec: gridspec.Spec{Kind: DeploymentGrid, Key: "zone"}, Name: "web"}
	for _, test := range []struct {
		name string
		live Live
		want string
	}{
		{"annotation", Live{Name: "web-zone-1-6dc0fb24", Annotations: MakePairs(map[string]string{v1.AnnotationValue: "Zone_1"})}, "Zone_1"},
		{"SuperEdge's: nodeSelector", Live{Name: "web-zone-1-6dc0fb24", NodeSelector: MakePairs(map[string]string{"zone": "Zone_1"})}, "Zone_1"},
		{"nodeSelector of an old key", Live{Name: "web-zone-1-6dc0fb24", Labels: MakePairs(map[string]string{v1.LabelKey: "site"}),
			NodeSelector: MakePairs(map[string]string{"site": "Zone_1", "zone": "x"})}, "Zone_1"},
		{"the name", Live{Name: "web-a"}, "a"},
		{"an annotation that somebody has altered", Live{Name: "web-a", Annotations: MakePairs(map[string]string{v1.AnnotationValue: "b"})}, "a"},
		{"another name", Live{Name: "shop-a", NodeSelector: MakePairs(map[string]string{"zone": "a"})}, ""},
	} {
		check(t, test.name, ValueOf(g, test.live), test.want)
	}
}

// TestDistributedGrid: a Grid that represents another cluster is expanded by that cluster, which
// also writes its status. Nothing is done for a Grid that is being deleted either.
func TestDistributedGrid(t *testing.T) {
	copied := FromDeploymentGrid(&v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"superedge.io/dis": "yes"}}})
	if !copied.Idle() {
		t.Error("a copy for another cluster is not idle")
	}
	c := running(t, "a b")
	c.vanish("a")
	c.expect("lost web-a")
	c.after(time.Hour) // its grace is over
	c.appear("c")
	c.foreign(Live{Name: "web-c", Labels: MakePairs(ownLabels())})
	c.grid.Deleting = true
	c.expect() // only garbage collection removes children, and an orphan is not adopted
	c.grid.Deleting, c.grid.Distributed = false, copied.Distributed
	c.expect()
	idle := IdleCondition(copied, nil, start())
	if idle == nil || idle.Type != v1.ConditionIdle || idle.Status != metav1.ConditionTrue {
		t.Fatalf("the condition of an idle Grid is %+v", idle)
	}
	contains(t, idle.Message, "label superedge.io/dis", "remove the label")
	if again := IdleCondition(copied, []metav1.Condition{*idle}, start()); again != nil {
		t.Errorf("it is written again: %+v", again)
	}
	if of := IdleCondition(c.grid, nil, start()); of == nil {
		t.Error("no condition")
	}
	c.grid.Distributed = false
	if of := IdleCondition(c.grid, nil, start()); of != nil {
		t.Errorf("an ordinary Grid is idle: %+v", of)
	}
}
