package grid

import (
	"context"
	"fmt"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/removal"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Config is what the controllers work with.
type Config struct {
	Grace   time.Duration    // how long a lost unit is kept; negative: always
	Budget  removal.Budget   // how many lost units of a Grid are removed within an hour
	Now     func() time.Time // the clock of graces and conditions
	Metrics *Metrics
	// Namespaces are those of CacheOptions; none: all.
	Namespaces []string
	// MaxUnits is how many units a Grid may have before no child is created; 0: no limit.
	MaxUnits int
	// NewUnits is how many new units one Node may bring to a Grid within a day; 0: any number.
	NewUnits int
	// Fleet: Grids are distributed to other clusters, and their statuses say what these report. The
	// manager's scheme must know the kinds of v1alpha1, whose CRDs must be there.
	Fleet bool
}

// Add adds the controllers of the three Grids to a manager that has CacheOptions and Scheme. The
// CRDs must be there.
func Add(ctx context.Context, m manager.Manager, c Config) error {
	if err := m.GetFieldIndexer().IndexField(ctx, &corev1.Node{}, indexKey, nodeKeys); err != nil {
		return fmt.Errorf("indexing the cache of Nodes: %w", err)
	}
	if c.Fleet {
		if err := addFleetIndexes(ctx, m.GetFieldIndexer()); err != nil {
			return err
		}
	}
	pods := &misplaced{client: m.GetClient(), live: m.GetAPIReader(), now: c.Now, namespaces: c.Namespaces, of: map[expand.Kind]*watched{}}
	for _, k := range kinds() {
		if err := addIndexes(ctx, m.GetFieldIndexer(), k); err != nil {
			return err
		}
		r := &reconciler{
			kind: k, client: m.GetClient(), live: m.GetAPIReader(), now: c.Now, grace: c.Grace, budget: c.Budget, maxUnits: c.MaxUnits, newUnits: c.NewUnits,
			events: m.GetEventRecorder(Manager), metrics: c.Metrics, memory: newMemory(), misplaced: pods, distributes: c.Fleet,
		}
		if k.units() {
			pods.of[k.name] = &watched{kind: k, memory: r.memory, wake: make(chan event.GenericEvent, wokenMax)}
		}
		if err := r.add(m); err != nil {
			return fmt.Errorf("adding the controller of %ss: %w", k.name, err)
		}
	}
	if err := pods.add(m); err != nil {
		return fmt.Errorf("adding the controller of misplaced Pods: %w", err)
	}
	return nil
}

func (r *reconciler) add(m manager.Manager) error {
	c, err := newController(m, string(r.kind.name), r, workers)
	if err != nil {
		return err
	}
	sources := []source.Source{
		source.Kind(m.GetCache(), r.kind.newGrid(), &handler.EnqueueRequestForObject{}, wishes()),
		source.Kind(m.GetCache(), r.kind.newChild(), r.onChild()),
	}
	if w := r.misplaced.of[r.kind.name]; w != nil {
		sources = append(sources,
			source.Kind(m.GetCache(), &corev1.Node{}, onNode(reachedKeys, r.wakeByKey)),
			source.Channel(w.wake, &handler.EnqueueRequestForObject{}))
	}
	if r.distributes {
		sources = append(sources,
			source.Kind(m.GetCache(), &v1alpha1.GridReport{}, r.onReport()),
			source.Kind(m.GetCache(), &v1alpha1.FleetCluster{}, r.onCluster()))
	}
	return watchAll(c, sources)
}

func (m *misplaced) add(to manager.Manager) error {
	c, err := newController(to, "MisplacedPods", m, 1)
	if err != nil {
		return err
	}
	return watchAll(c, []source.Source{source.Kind(to.GetCache(), &corev1.Node{}, onNode(movedKeys, m.wakeForPods))})
}

func newController(m manager.Manager, name string, r reconcile.Reconciler, workers int) (controller.Controller, error) {
	alone := true // names of controllers are unique per process, but a process may have several managers
	return controller.New(name, m, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      &alone,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryDelay, retryDelayMax),
	})
}

func watchAll(c controller.Controller, sources []source.Source) error {
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

// CacheOptions returns the options of a manager's cache for Add, which keeps no managedFields.
// Children are reduced to what is read by their types (see Scheme), and Nodes by the options of
// package site. The cache watches only these namespaces, or all without any.
func CacheOptions(namespaces []string) cache.Options {
	o := cache.Options{DefaultTransform: trim}
	for _, name := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[name] = cache.Config{}
	}
	return o
}

// FleetObjects returns more options of that cache, for ByObject, if Config.Fleet is set: it
// watches reports in all namespaces, so in those of all clusters.
func FleetObjects() map[client.Object]cache.ByObject {
	everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
	return map[client.Object]cache.ByObject{&v1alpha1.GridReport{}: {Namespaces: everywhere}}
}

func trim(o any) (any, error) {
	switch o := o.(type) {
	case *v1alpha1.GridReport:
		trimReport(o)
	case client.Object:
		o.SetManagedFields(nil)
	}
	return o, nil
}
