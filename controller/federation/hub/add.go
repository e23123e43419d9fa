package hub

import (
	"context"
	"fmt"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/controller/removal"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Config is what the controller works with.
type Config struct {
	// Now is the clock by which members are heard or silent.
	Now func() time.Time
	// Grace is for how long a Grid stays in a cluster that it is not meant for any more; negative:
	// always. Budget is from how many clusters a Grid is removed within an hour.
	Grace  time.Duration
	Budget removal.Budget
	// Metrics are updated after each decision.
	Metrics *Metrics
	// Detached reports whether what applies Grids to the cluster of a FleetCluster, named by its
	// UID, has dropped them; nil: always.
	Detached func(cluster types.UID) bool
}

// AddToScheme makes a scheme know what this package reads besides Grids.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	metav1.AddToGroupVersion(s, coordinationv1.SchemeGroupVersion)
	return v1alpha1.AddToScheme(s)
}

// Add adds the controller of FleetClusters to a manager whose scheme knows Grids and the types of
// AddToScheme, and whose cache has ByObject among its options. The CRDs must be there.
func Add(m manager.Manager, c Config) error {
	alone := true // names of controllers are unique per process, but a process may have several managers
	r := &reconciler{
		client: m.GetClient(), live: m.GetAPIReader(), now: c.Now, grace: c.Grace, budget: c.Budget, detached: c.Detached, events: m.GetEventRecorder(Manager),
		metrics: c.Metrics, decide: plan.Decide, memory: &memory{}, written: newWrites(), excess: excess{},
	}
	built, err := controller.New("Fleet", m, controller.Options{
		Reconciler: r,
		// Everything is decided together, so there is one thing to reconcile.
		MaxConcurrentReconciles: 1,
		SkipNameValidation:      &alone,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryDelay, retryDelayMax),
	})
	if err != nil {
		return fmt.Errorf("making the controller of FleetClusters: %w", err)
	}
	for kind, only := range map[client.Object][]predicate.Predicate{
		&v1.DeploymentGrid{}: {wishes()}, &v1.StatefulSetGrid{}: {wishes()}, &v1.ServiceGrid{}: {wishes()}, &v1alpha1.FleetCluster{}: nil,
		&v1alpha1.GridBundle{}: nil, &v1alpha1.GridReport{}: nil, &coordinationv1.Lease{}: nil, newNamespace(): nil,
	} {
		if err := built.Watch(source.Kind(m.GetCache(), kind, together(), only...)); err != nil {
			return fmt.Errorf("watching for the controller of FleetClusters: %w", err)
		}
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// together returns a handler that answers all events within pauseOf by one reconcile.
func together() handler.EventHandler {
	everything := reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}
	wake := func(q queue, old, new client.Object) { q.AddAfter(everything, pauseOf(old, new)) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(q, nil, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(q, e.Object, nil) },
	}
}

// pauseOf returns for how long a change can wait; old is nil if the object is new, and new if it
// is gone.
func pauseOf(old, new client.Object) time.Duration {
	if old == nil || new == nil {
		return eventDelay
	}
	switch new.(type) {
	case *v1alpha1.GridReport:
		return reportDelay
	case *coordinationv1.Lease: // a member can write it as often as it likes
		if old.GetAnnotations()[v1alpha1.AnnotationHeartbeat] == new.GetAnnotations()[v1alpha1.AnnotationHeartbeat] {
			return renewalDelay
		}
		return reportDelay
	}
	return eventDelay
}

// wishes lets only changes of distributed Grids pass that are not of the status alone.
func wishes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isDistributed(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return isDistributed(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (isDistributed(e.ObjectOld) || isDistributed(e.ObjectNew)) && wishVersion(e.ObjectOld) != wishVersion(e.ObjectNew)
		},
	}
}

// wishVersion returns a text that differs if two versions of a Grid differ in more than the
// status. It is only to be compared.
func wishVersion(o client.Object) string {
	return fmt.Sprintf("%s %d %t %q %q %q", // maps are printed in order
		o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp() != nil, o.GetFinalizers(), o.GetLabels(), o.GetAnnotations())
}
