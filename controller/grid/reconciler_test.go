package grid

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reading is a cache that calls get with each read of one object.
type reading struct {
	client.Client
	get func(client.ObjectKey, client.Object) error
}

// Get calls get.
func (r reading) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return r.get(key, o)
}

// TestWaitsForWhatItLooksAt: a foreign object may be deleted right after it was read; its event
// must wake the Grid.
func TestWaitsForWhatItLooksAt(t *testing.T) {
	const template = `{"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {}}}`
	r := &reconciler{kind: deploymentGrid(), memory: newMemory()}
	name := types.NamespacedName{Namespace: "default", Name: "web"}
	known := r.memory.of(name, "1")
	theirs := types.NamespacedName{Namespace: "default", Name: "web-a"}
	looked := false
	r.client = reading{get: func(key client.ObjectKey, o client.Object) error {
		looked = true
		if waiting := r.memory.waiting(theirs); len(waiting) != 1 || waiting[0] != name {
			t.Errorf("while %s is read these wait for it: %v", key, waiting)
		}
		return o.(*deployment).reduce(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "9"}})
	}}
	observed := expand.Observed{
		Grid: expand.Grid{
			Spec:      gridspec.Spec{Kind: expand.DeploymentGrid, Key: "zone", Template: []byte(template)},
			Namespace: "default", Name: "web", UID: "1",
		},
		Units: map[string][]string{"a": {"node-1"}}, Occupants: map[string]*expand.Live{},
	}
	if _, err := r.decide(t.Context(), &observed, known); err != nil || !looked {
		t.Fatalf("looked: %t, %v", looked, err)
	}
	if len(r.memory.waiting(theirs)) != 1 {
		t.Error("nobody waits for the end of the collision")
	}
	delete(observed.Units, "a")
	if _, err := r.decide(t.Context(), &observed, known); err != nil || len(r.memory.waiting(theirs)) != 0 {
		t.Errorf("the Grid waits for a name that it does not want any more: %v", err)
	}
}

// TestNothingIsSaidOfAnIdleGrid: a Grid that begins to represent another cluster has no metrics
// here, and is forgotten.
func TestNothingIsSaidOfAnIdleGrid(t *testing.T) {
	name, registry := types.NamespacedName{Namespace: "default", Name: "web"}, prometheus.NewRegistry()
	r := &reconciler{kind: deploymentGrid(), memory: newMemory(), metrics: NewMetrics(), now: time.Now}
	registry.MustRegister(r.metrics)
	r.memory.of(name, "1")
	r.metrics.observe(expand.Grid{Spec: gridspec.Spec{Kind: expand.DeploymentGrid}, Namespace: name.Namespace, Name: name.Name}, v1.WorkloadGridStatus{})
	r.client = reading{get: func(key client.ObjectKey, o client.Object) error {
		o.SetLabels(map[string]string{v1.LabelDistributed: ""})
		o.(*v1.DeploymentGrid).Status.Conditions = []metav1.Condition{{Type: v1.ConditionIdle, Status: metav1.ConditionTrue}}
		o.SetUID("1")
		return nil
	}}
	_, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: name})
	n, count := testutil.GatherAndCount(registry)
	if err := errors.Join(err, count); err != nil || n != 0 || r.memory.uid(name) != "" {
		t.Errorf("%d metrics, remembered as %q, %v", n, r.memory.uid(name), err)
	}
}
