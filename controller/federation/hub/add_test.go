package hub

import (
	"context"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// pauses is a queue that keeps for how long each request waits.
type pauses struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	all []time.Duration
}

// AddAfter keeps the pause.
func (q *pauses) AddAfter(_ reconcile.Request, pause time.Duration) { q.all = append(q.all, pause) }

// TestPauses: what is decided soon, and what can wait.
func TestPauses(t *testing.T) {
	at := time.Unix(1, 0)
	grid := newGrid("shop", "pos")
	for _, test := range []struct {
		name     string
		old, new client.Object
		want     time.Duration
	}{
		{"a Grid", grid, grid, eventDelay},
		{"a new report", nil, newReport("west", grid), eventDelay},
		{"a report", newReport("west", grid), newReport("west", grid), reportDelay},
		{"a report that is gone", newReport("west", grid), nil, eventDelay},
		{"a renewed Lease", newLease("west", at, "{}"), newLease("west", at.Add(time.Minute), "{}"), renewalDelay},
		{"another heartbeat", newLease("west", at, "{}"), newLease("west", at, `{"nodes":1}`), reportDelay},
	} {
		q := &pauses{}
		switch h := together(); {
		case test.old == nil:
			h.Create(context.Background(), event.CreateEvent{Object: test.new}, q)
		case test.new == nil:
			h.Delete(context.Background(), event.DeleteEvent{Object: test.old}, q)
		default:
			h.Update(context.Background(), event.UpdateEvent{ObjectOld: test.old, ObjectNew: test.new}, q)
		}
		if len(q.all) != 1 || q.all[0] != test.want {
			t.Errorf("%s: waits %s, want %s", test.name, q.all, test.want)
		}
	}
}

// TestWishes: what changes of Grids are decided on.
func TestWishes(t *testing.T) {
	change := func(do func(*v1.DeploymentGrid)) *v1.DeploymentGrid {
		g := newGrid("shop", "pos")
		do(g)
		return g
	}
	plain := change(func(g *v1.DeploymentGrid) { g.Labels = nil })
	for _, test := range []struct {
		name     string
		old, new client.Object
		want     bool
	}{
		{"the status", newGrid("shop", "pos"), change(func(g *v1.DeploymentGrid) { g.ResourceVersion, g.Status.ReadyRate = "2", "1/1" }), false},
		{"the spec", newGrid("shop", "pos"), change(func(g *v1.DeploymentGrid) { g.Generation = 2 }), true},
		{"an annotation", newGrid("shop", "pos"), change(func(g *v1.DeploymentGrid) { g.Annotations = map[string]string{v1alpha1.AnnotationClusters: "a"} }), true},
		{"the finalizer", newGrid("shop", "pos"), change(func(g *v1.DeploymentGrid) { g.Finalizers = nil }), true},
		{"distributed now", plain, newGrid("shop", "pos"), true},
		{"distributed no more", newGrid("shop", "pos"), plain, true},
		{"a Grid that is not distributed", plain, change(func(g *v1.DeploymentGrid) { g.Labels, g.Generation = nil, 2 }), false},
	} {
		if got := wishes().Update(event.UpdateEvent{ObjectOld: test.old, ObjectNew: test.new}); got != test.want {
			t.Errorf("%s: decided on: %t, want %t", test.name, got, test.want)
		}
	}
	if wishes().Create(event.CreateEvent{Object: plain}) || !wishes().Delete(event.DeleteEvent{Object: newGrid("shop", "pos")}) {
		t.Error("Grids that are new or gone: only distributed ones are decided on")
	}
}
