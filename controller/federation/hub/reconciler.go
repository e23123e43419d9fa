package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/controller/removal"
	"gridproxy/controller/retry"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Manager is the field manager of what is written on the hub, and the source of its Events.
const Manager = "grid-controller-hub"

// reconciler makes the hub what plan says, each time from everything that is observed.
type reconciler struct {
	client   client.Client // reads from the caches
	live     client.Reader // reads from the API server
	now      func() time.Time
	watched  time.Time // since when everything was observed
	grace    time.Duration
	budget   removal.Budget
	detached func(cluster types.UID) bool
	events   events.EventRecorder
	metrics  *Metrics
	decide   func(plan.Observed) plan.Plan
	hub      string // the UID of the Namespace kube-system, once it has been read
	memory   *memory
	written  *writes
	faults   faults
	unfit    unfit
	excess   excess
	retries  int // reconciles one after the other that were to be tried again
}

// Reconcile looks at all Grids, clusters and reports, and writes what differs.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := r.identify(ctx); err != nil {
		return reconcile.Result{}, err
	}
	l, err := r.list(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.now()
	shown, missed := r.written.shown(l, now)
	if missed > 0 {
		log.FromContext(ctx).Info("the caches do not show what was written; it is decided without it", "objects", missed, "after", cacheTimeout)
	}
	if !shown { // the event that shows it may look like no change
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	if r.watched.IsZero() { // the caches have synced, and this replica leads
		r.watched = now
	}
	observed := r.memory.observe(l, r.hub, now)
	observed.Watched, observed.Grace, observed.Budget = r.watched, r.grace, r.budget
	for i, c := range observed.Clusters {
		observed.Clusters[i].Detached = r.detached == nil || r.detached(c.Object.UID)
	}
	r.written.rests(observed.Clusters)
	p := r.decide(observed)
	e := newExecution(r, l, observed)
	err = e.run(ctx, p)
	r.metrics.summary.Store(summarize(l, e.statuses()))
	r.faults = r.faults.tell(r.events, observed.Grids, p.Faults)
	again, unremoved := r.excess.delete(ctx, r.client, l.reports, now)
	if err := errors.Join(err, unremoved); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.next(ctx, retry.Earlier(p.Recheck, again), e.again.Load())}, nil
}

// next returns the pause before the next reconcile, 0 if only an event starts it. What has to be
// tried again and again, such as the deletion of a bundle with a finalizer of others, is tried
// less and less often.
func (r *reconciler) next(ctx context.Context, recheck time.Duration, again bool) time.Duration {
	if !again {
		r.retries = 0
		return recheck
	}
	pause := retry.Pause(cacheDelay, cacheTimeout, r.retries)
	if r.retries++; pause == cacheTimeout && r.retries < 10 {
		log.FromContext(ctx).Info("what is to be written or deleted still waits; it is tried again", "every", cacheTimeout)
	}
	return retry.Earlier(recheck, pause)
}

// identify reads once, into r.hub, which cluster this is.
func (r *reconciler) identify(ctx context.Context) error {
	if r.hub != "" {
		return nil
	}
	n := newNamespace()
	if err := r.live.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, n); err != nil {
		return fmt.Errorf("reading which cluster this is, the UID of the Namespace %s: %w", metav1.NamespaceSystem, err)
	}
	r.hub = string(n.UID)
	return nil
}

// list reads everything from the caches. The objects are not copies: they must not be changed.
func (r *reconciler) list(ctx context.Context) (lists, error) {
	var l lists
	var clusters v1alpha1.FleetClusterList
	var bundles v1alpha1.GridBundleList
	var reports v1alpha1.GridReportList
	var leases coordinationv1.LeaseList
	var namespaces metav1.PartialObjectMetadataList
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	grids := []client.ObjectList{&v1.DeploymentGridList{}, &v1.StatefulSetGridList{}, &v1.ServiceGridList{}}
	// Of Leases, the caches have only those of the fleet.
	for _, list := range append(grids, &clusters, &bundles, &reports, &leases, &namespaces) {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return l, fmt.Errorf("reading %T from the caches: %w", list, err)
		}
	}
	for _, list := range grids {
		err := meta.EachListItem(list, func(o runtime.Object) error {
			if g, ok := o.(client.Object); ok {
				l.grids = append(l.grids, g)
			}
			return nil
		})
		if err != nil {
			return l, fmt.Errorf("reading Grids from the caches: %w", err)
		}
	}
	l.clusters, l.bundles, l.reports, l.leases, l.namespaces = clusters.Items, bundles.Items, reports.Items, leases.Items, namespaces.Items
	return l, nil
}
