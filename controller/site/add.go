package site

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/removal"
	"gridproxy/controller/site/assign"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Config is what the controller works with.
type Config struct {
	// Grace is how long a unit that a group has found is kept without Nodes; negative: always.
	Grace time.Duration
	// Budget is how many lost units of a group are removed within an hour.
	Budget removal.Budget
	// MaxUnits is how many units a group may find; 0: no limit.
	MaxUnits int
	// NewUnits is how many new units one Node may have a group find within a day; 0: any number.
	NewUnits int
	// DefaultUnit is the name of the unit of all Nodes, made once if it is absent; "": none is
	// made.
	DefaultUnit string
	// AllowPrivilegedSetNode lets units set NoExecute taints and labels under node-role.kubernetes.io
	// and node-restriction.kubernetes.io.
	AllowPrivilegedSetNode bool
	// Now is the clock of graces and conditions.
	Now func() time.Time
	// Metrics are updated after each decision.
	Metrics *Metrics
}

// Add adds the controller of NodeUnits and NodeGroups to a manager whose scheme knows their types
// and those of Grids and of Kubernetes' core. The CRDs of NodeUnits and NodeGroups must be there.
// The manager's cache should have ByObject among its options.
func Add(m manager.Manager, c Config) error {
	alone := true // names of controllers are unique per process, but a process may have several managers
	uses := newUses(m.GetCache())
	r := &reconciler{
		client: m.GetClient(), live: m.GetAPIReader(), now: c.Now, grace: c.Grace, budget: c.Budget, maxUnits: c.MaxUnits, newUnits: c.NewUnits,
		defaultUnit: c.DefaultUnit, nodes: newNodeMemory(), foreign: map[types.UID]time.Time{},
		events: m.GetEventRecorder(assign.Manager), metrics: c.Metrics, uses: uses, privileged: c.AllowPrivilegedSetNode,
	}
	built, err := controller.New("Sites", m, controller.Options{
		Reconciler: r,
		// Everything is decided together, so there is one thing to reconcile.
		MaxConcurrentReconciles: 1,
		SkipNameValidation:      &alone,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryDelay, retryDelayMax),
	})
	if err != nil {
		return fmt.Errorf("making the controller of NodeUnits and NodeGroups: %w", err)
	}
	matters := predicate.TypedPredicate[*corev1.Node](predicate.TypedFuncs[*corev1.Node]{UpdateFunc: r.nodes.matters})
	for _, s := range []source.Source{
		source.Kind(m.GetCache(), &v1alpha2.NodeUnit{}, all[*v1alpha2.NodeUnit]()),
		source.Kind(m.GetCache(), &v1alpha2.NodeGroup{}, all[*v1alpha2.NodeGroup]()),
		source.Kind(m.GetCache(), &corev1.Node{}, all[*corev1.Node](), matters),
		source.Channel(uses.wake, all[client.Object]()),
	} {
		if err := built.Watch(s); err != nil {
			return fmt.Errorf("watching for the controller of NodeUnits and NodeGroups: %w", err)
		}
	}
	return nil
}

func all[T client.Object]() handler.TypedEventHandler[T, reconcile.Request] {
	everything := []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, _ T) []reconcile.Request { return everything })
}

// ByObject returns options for the manager's cache. Nodes are cut down to what is read of them.
// What package grid reads, labels and whether a Node is ready, is a part of that, so both have
// one cache. Services that are read as metadata only keep the annotation topologyKeys alone.
// others transforms Services that are read whole; if it is nil, they stay as they are.
func ByObject(others toolscache.TransformFunc) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Node{}: {Transform: trim},
		newService(): {Transform: func(o any) (any, error) {
			if s, isMetadata := o.(*metav1.PartialObjectMetadata); isMetadata {
				trimService(s)
				return s, nil
			}
			if others == nil {
				return o, nil
			}
			return others(o)
		}},
	}
}

func trim(o any) (any, error) {
	if n, ok := o.(*corev1.Node); ok {
		assign.Trim(n)
	}
	return o, nil
}

func trimService(s *metav1.PartialObjectMetadata) {
	text, found := s.Annotations[topology.AnnotationKeys]
	s.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion}
	if found {
		s.Annotations = map[string]string{topology.AnnotationKeys: strings.Clone(text[:min(len(text), assign.MaxAnnotation)])}
	}
}
