package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestGraceOutlivesControllers: the clock of a lost unit goes on where it was when its controller is killed, whether
// another one stands by or is started later. The child has a finalizer, so that the API server's own time of the
// deletion can be read.
func TestGraceOutlivesControllers(t *testing.T) {
	const grace = 30 * time.Second
	f := newFleet(t, 4, 1)
	flags := append([]string{"--unit-removal-grace=" + grace.String()}, quick...)
	leader, other := f.controller(flags...), f.controller(flags...)
	f.addGrids(1, "replicas: 0")
	f.settled()
	if len(leader.writes()) == 0 {
		leader, other = other, leader
	}
	before := f.lives()
	const child = "grid-00-unit-01"
	f.mergeInto(child, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	f.RemoveLabels(t, nodeName("unit-01", 0), "location")
	lostAt := f.lostAt(child)
	// A leader that is killed in between loses its Event, or the next one sends it again.
	expectEvents(t, f.client, "grid-00", "UnitLost", 1)
	wait.Until(t, "the status says that the unit is lost", func() error {
		g, err := f.grid("grid-00")
		isLost := func(u v1.UnitStatus) bool { return u.Phase == v1.UnitLost }
		return errors.Join(err, wait.Check(slices.ContainsFunc(g.Status.Units, isLost), "its rows are %v", g.Status.Units))
	})
	leader.Kill()
	f.follows(other)
	t.Logf("the other leads %s after the loss", since(lostAt))
	other.Kill()
	f.follows(f.controller(flags...))
	t.Logf("a third leads %s after the loss", since(lostAt))
	if now := f.lostAt(child); !now.Equal(lostAt) {
		t.Errorf("the clock began at %s, and at %s after a restart", lostAt, now)
	}
	wait.Until(f.t, child+" is deleted", func() error {
		if d := f.child(child); d.DeletionTimestamp == nil {
			return fmt.Errorf("it is not")
		} else if due := lostAt.Add(grace); d.DeletionTimestamp.Time.Before(due) {
			t.Errorf("deleted at %s, lost at %s: its grace is over at %s", d.DeletionTimestamp, lostAt, due)
		} else {
			t.Logf("deleted %s after its grace was over", d.DeletionTimestamp.Sub(due))
		}
		return nil
	})
	f.mergeInto(child, `{"metadata":{"finalizers":null}}`)
	f.units = slices.DeleteFunc(f.units, func(u string) bool { return u == "unit-01" })
	f.settled()
	delete(before, child)
	if after := f.lives(); !maps.Equal(before, after) {
		t.Errorf("other children were %v and are %v", before, after)
	}
	expectEvents(t, f.client, "grid-00", "UnitLost", 1)
	expectEvents(t, f.client, "grid-00", "UnitRemoved", 1)
}

// follows waits until a controller leads: it is the one that says that it has seen an edit.
func (f *fleet) follows(c *counted) {
	f.t.Helper()
	f.poke("seen by " + c.Healthz.String())
	wait.Until(f.t, "the controller that should lead has written", func() error { return wait.Check(len(c.writes()) != 0, "another controller leads") })
}

// soonRemoving are the flags of a controller that is alone, and soon removes what stood on lost
// units.
func soonRemoving() []string { return []string{"--leader-elect=false", "--unit-removal-grace=2s"} }

// newLosing starts a fleet with units of one Node each, such a controller and one Grid. It
// returns the UIDs of the children by name, too.
func newLosing(t *testing.T, units int) (*fleet, *counted, map[string]types.UID) {
	t.Helper()
	f := newFleet(t, units, 1)
	c := f.controller(soonRemoving()...)
	f.addGrids(1, "replicas: 0")
	f.settled()
	return f, c, f.lives()
}

// TestAllNodesDeleted: the deletion of all Nodes looks like a mistake. Nothing is deleted, however long it lasts, also
// by a controller that starts in it, but what the user releases by name.
func TestAllNodesDeleted(t *testing.T) {
	f, c, before := newLosing(t, 4)
	f.whilePaused(func() {
		for _, unit := range f.units {
			f.DeleteNode(t, nodeName(unit, 0))
		}
		f.overdue(before, 2*time.Second)
	})
	f.wantCondition(v1.ConditionDeletionHeld, metav1.ConditionTrue)
	f.poke("held")
	f.wantLives(before)
	c.Kill()
	c = f.controller(soonRemoving()...)
	c.WaitReady(t)
	f.poke("held after a restart")
	f.wantLives(before)
	if deletes := c.count.Requests(func(r nodes.Request) bool { return strings.HasPrefix(r.Verb, "delete") }); len(deletes) > 0 {
		t.Errorf("deletions while they are held: %v", deletes)
	}
	f.release("unit-02")
	delete(before, "grid-00-unit-02")
	wait.Until(f.t, "the released unit is removed", func() error {
		after := f.lives()
		return wait.Check(maps.Equal(before, after), "there are %v, want %v", after, before)
	})
	f.poke("after the release")
	f.wantLives(before)
	f.units = slices.DeleteFunc(f.units, func(u string) bool { return u == "unit-02" })
	var all []nodes.Node
	for _, unit := range f.units {
		all = append(all, nodes.Node{Name: nodeName(unit, 0), Labels: map[string]string{"location": unit}})
	}
	f.AddNodes(t, all...)
	f.wantCondition(v1.ConditionDeletionHeld, metav1.ConditionFalse)
	f.settled()
	f.wantLives(before)
	for name := range before {
		if at := f.child(name).Annotations[v1.AnnotationLostAt]; at != "" {
			t.Errorf("%s is still marked as lost at %s", name, at)
		}
	}
}

// TestRekeyed: gridUniqKey is edited to a key that Nodes carry with as many other values. The
// children of before stay after their grace, also with a controller that starts then, until they
// are released by name.
func TestRekeyed(t *testing.T) {
	f, c, before := newLosing(t, 3)
	for i, unit := range f.units {
		f.SetLabels(t, nodeName(unit, 0), map[string]string{"loctaion": fmt.Sprintf("other-%d", i)})
	}
	f.mergeIntoGrid(`{"spec":{"gridUniqKey":"loctaion"}}`)
	f.overdue(before, 2*time.Second)
	f.wantCondition(v1.ConditionRekeyed, metav1.ConditionTrue)
	expectEvents(t, f.client, "grid-00", "Rekeyed", 1)
	c.Kill()
	f.controller(soonRemoving()...).WaitReady(t)
	f.poke("after a restart")
	if after := f.lives(); len(after) != 2*len(before) {
		t.Fatalf("there are %v, want those of both keys", after)
	}
	f.release(f.units...)
	wait.Until(f.t, "the released children are deleted", func() error {
		after := f.lives()
		return wait.Check(len(after) == len(before) && after["grid-00-"+f.units[0]] == "", "there are %v", after)
	})
	f.wantCondition(v1.ConditionRekeyed, metav1.ConditionFalse)
}

// release allows the removal of units after their present losses.
func (f *fleet) release(units ...string) {
	f.t.Helper()
	var entries []string
	for _, unit := range units {
		entries = append(entries, unit+"@"+f.lostAt("grid-00-"+unit).UTC().Format(time.RFC3339))
	}
	f.mergeIntoGrid(`{"metadata":{"annotations":{"superedge.io/allow-unit-removal":"` + strings.Join(entries, ",") + `"}}}`)
}

// TestHalfTheFleetIsLost: 20 of 40 units lose their Nodes, too few for all deletions to be held.
// Two are deleted, as the budget of 5 % says, also when controllers are killed and follow each
// other; the others wait, and the status says so.
func TestHalfTheFleetIsLost(t *testing.T) {
	f, c, before := newLosing(t, 40)
	wait.Until(f.t, "the children are older than the loss will be", func() error {
		for name := range before {
			// real time: the API server tells ages in seconds, and graces depend on them
			if age := time.Since(f.child(name).CreationTimestamp.Time); age < 8*time.Second {
				return fmt.Errorf("%s is %s old", name, age)
			}
		}
		return nil
	})
	f.whilePaused(func() {
		lost := map[string]types.UID{}
		for _, unit := range f.units[:20] {
			f.RemoveLabels(t, nodeName(unit, 0), "location")
			lost["grid-00-"+unit] = before["grid-00-"+unit]
		}
		f.overdue(lost, 2*time.Second)
	})
	budgetSpent := func() {
		t.Helper()
		wait.Until(f.t, "two children are deleted, and the others wait", func() error {
			g, err := f.grid("grid-00")
			if err != nil {
				return err
			}
			return checkCondition(g.Status.Conditions, v1.ConditionDeletionHeld, metav1.ConditionTrue, "BudgetSpent", "18 units are lost and wait")
		})
		if n := len(f.lives()); n != 38 {
			t.Errorf("%d children are left, want 38", n)
		}
	}
	budgetSpent()
	expectEvents(t, f.client, "grid-00", "DeletionHeld", 1) // an Event is lost with a controller that is killed before it has sent it
	for range 2 {
		c.Kill()
		c = f.controller(soonRemoving()...)
		c.WaitReady(t)
		f.poke("after a restart")
		budgetSpent()
	}
	expectEvents(t, f.client, "grid-00", "DeletionHeld", 1)
}

// whilePaused does what shall count as one loss: else the grace of the unit that is lost first may
// be over before the others are lost.
func (f *fleet) whilePaused(do func()) {
	f.t.Helper()
	f.mergeIntoGrid(`{"metadata":{"annotations":{"superedge.io/paused":"true"}}}`)
	f.poke("paused")
	do()
	f.mergeIntoGrid(`{"metadata":{"annotations":{"superedge.io/paused":null}}}`)
}

// overdue waits until all children are marked as lost and their graces are over.
func (f *fleet) overdue(children map[string]types.UID, grace time.Duration) {
	f.t.Helper()
	for name := range children {
		pauseFor(f.t, time.Until(f.lostAt(name).Add(grace)))
	}
}

func (f *fleet) wantCondition(of string, want metav1.ConditionStatus) {
	f.t.Helper()
	wait.Until(f.t, fmt.Sprintf("%s is %s", of, want), func() error {
		g, err := f.grid("grid-00")
		if err != nil {
			return err
		}
		return checkCondition(g.Status.Conditions, of, want, "", "")
	})
}

// poke has the Grid reconciled, and waits until that is over. A template for a unit that does not
// exist changes nothing.
func (f *fleet) poke(why string) {
	f.t.Helper()
	value, err := json.Marshal(why)
	must(f.t, err)
	f.mergeIntoGrid(fmt.Sprintf(`{"spec":{"templates":{"no-such-unit":%s}}}`, value))
	wait.Until(f.t, "the Grid is reconciled", func() error {
		g, err := f.grid("grid-00")
		return errors.Join(err, wait.Check(g.Status.ObservedGeneration == g.Generation, "generation %d, observed %d", g.Generation, g.Status.ObservedGeneration))
	})
}

func (f *fleet) mergeIntoGrid(patch string) {
	f.t.Helper()
	o := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "grid-00"}}
	must(f.t, f.client.Patch(f.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("user")))
}

func (f *fleet) mergeInto(child, patch string) {
	f.t.Helper()
	o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: child}}
	must(f.t, f.client.Patch(f.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("user")))
}

// child reads a Deployment; one without a name if it does not exist.
func (f *fleet) child(name string) *appsv1.Deployment {
	f.t.Helper()
	d := &appsv1.Deployment{}
	must(f.t, client.IgnoreNotFound(f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, d)))
	return d
}

// lostAt is when the unit of a child was lost, once the child says so.
func (f *fleet) lostAt(child string) (at time.Time) {
	f.t.Helper()
	wait.Until(f.t, child+" is marked as lost", func() (err error) {
		at, err = time.Parse(time.RFC3339, f.child(child).Annotations[v1.AnnotationLostAt])
		return err
	})
	return at
}

// lives are the UIDs of the children that are not being deleted, by name.
func (f *fleet) lives() map[string]types.UID {
	f.t.Helper()
	all, err := f.deployments()
	must(f.t, err)
	uids := map[string]types.UID{}
	for name, d := range all {
		if d.DeletionTimestamp == nil {
			uids[name] = d.UID
		}
	}
	return uids
}

func (f *fleet) wantLives(want map[string]types.UID) {
	f.t.Helper()
	if got := f.lives(); !maps.Equal(want, got) {
		f.t.Errorf("the children are %v, want %v", got, want)
	}
}

func expectEvents(t *testing.T, c client.Client, grid, reason string, want int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d Events %s", want, reason), func() error {
		found, err := eventsOf(t, c, grid, reason)
		return errors.Join(err, wait.Check(len(found) == want, "there are %q", found))
	})
}

func eventsOf(t *testing.T, c client.Client, grid, reason string) (messages []string, err error) {
	t.Helper()
	var all corev1.EventList
	err = c.List(t.Context(), &all, client.InNamespace("default"))
	for _, e := range all.Items {
		if e.Reason == reason && e.InvolvedObject.Name == grid {
			messages = append(messages, e.Message)
		}
	}
	return messages, err
}
