package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type execution struct {
	*reconciler
	grids   map[string]client.Object // by UID
	bundles map[client.ObjectKey]types.UID
	targets map[string]*target // by the names of FleetClusters
	again   atomic.Bool        // something is to be tried again

	mu sync.Mutex
	// unguarded are the namespaces of Grids that lack the finalizer, and why; nil: another
	// attempt may succeed.
	unguarded map[string]*v1alpha1.Problem
}

// target is one cluster during an execution.
type target struct {
	observed plan.Cluster
	plan     plan.ClusterPlan
	// object is the FleetCluster as it was last written.
	object *v1alpha1.FleetCluster
	mu     sync.Mutex
	// unsent are the bundles that are not what they are to be, and why; nil: another attempt
	// may succeed.
	unsent map[string]*v1alpha1.Problem
	// failed: its finalizer or its status is not what it is to be.
	failed bool
}

func newExecution(r *reconciler, l lists, o plan.Observed) *execution {
	e := &execution{
		reconciler: r, grids: map[string]client.Object{}, bundles: map[client.ObjectKey]types.UID{}, targets: map[string]*target{},
		unguarded: map[string]*v1alpha1.Problem{},
	}
	for _, g := range l.grids {
		e.grids[string(g.GetUID())] = g
	}
	for i := range l.bundles {
		e.bundles[client.ObjectKeyFromObject(&l.bundles[i])] = l.bundles[i].UID
	}
	for _, c := range o.Clusters {
		e.targets[c.Object.Name] = &target{observed: c, object: c.Object.DeepCopy(), unsent: map[string]*v1alpha1.Problem{}}
	}
	return e
}

// run executes all steps, in the order of Plan. A step that fails keeps those from running that
// depend on it, and no others.
func (e *execution) run(ctx context.Context, p plan.Plan) error {
	var targets []*target
	for _, c := range p.Clusters {
		if t := e.targets[c.Name]; t != nil {
			t.plan = c
			targets = append(targets, t)
		}
	}
	return joined(slices.Concat(
		each(p.AddFinalizer, e.counted(kindGrid), func(r plan.Ref) error { return e.guard(ctx, r) }),
		each(wanted(targets, func(c plan.ClusterPlan) bool { return c.AddFinalizer }), e.counted(kindCluster),
			func(t *target) error { return e.guardCluster(ctx, t) }),
		each(e.sendings(targets), e.counted(kindBundle), func(s *sending) error { return e.send(ctx, s) }),
		each(targets, ignored, func(t *target) error { return e.report(ctx, t) }),
		each(wanted(targets, func(c plan.ClusterPlan) bool { return c.RemoveFinalizer }), e.counted(kindCluster),
			func(t *target) error { return e.releaseCluster(ctx, t) }),
		e.release(ctx, p.RemoveFinalizer),
	))
}

// statuses returns the statuses that the FleetClusters are to have after the execution, by name.
func (e *execution) statuses() map[string]v1alpha1.FleetClusterStatus {
	all := map[string]v1alpha1.FleetClusterStatus{}
	for name, t := range e.targets {
		all[name] = t.object.Status
	}
	return all
}

// The kinds of objects that are written, in metrics.
const (
	kindGrid    = "Grid"
	kindCluster = "FleetCluster"
	kindBundle  = "GridBundle"
)

// counted returns a function that counts the result of a write to an object of a kind.
func (e *execution) counted(kind string) func(error) {
	return func(err error) { e.metrics.wrote(kind, err) }
}

func ignored(error) {}

func wanted(all []*target, want func(plan.ClusterPlan) bool) []*target {
	return slices.DeleteFunc(slices.Clone(all), func(t *target) bool { return !want(t.plan) })
}

// each executes all steps, several at the same time, passes each result to tell, which must
// allow for that, and returns the result of each step, nil or an error.
func each[T any](steps []T, tell func(error), do func(T) error) []error {
	errs := make([]error, len(steps))
	var next atomic.Int64
	var running sync.WaitGroup
	for range min(workers, len(steps)) {
		// If a step panics, Wait never returns. After workqueue.ParallelizeUntil, the next steps
		// would begin while the process ends, and that step would have no error.
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(steps); i = int(next.Add(1)) - 1 {
				errs[i] = do(steps[i])
				tell(errs[i])
			}
		})
	}
	running.Wait()
	return errs
}

// joined returns one error for all that are not nil, or nil. It names the first errorsMax.
func joined(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if more := len(errs) - errorsMax; more > 0 {
		errs = append(errs[:errorsMax:errorsMax], fmt.Errorf("and %d more errors", more))
	}
	return errors.Join(errs...)
}

// tolerate returns nil, and requests a retry, if err means that the caches were behind. It returns
// any other error with what was being done.
func (e *execution) tolerate(err error, format string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), errors.Is(err, errOther):
		e.again.Store(true)
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// refusal returns why the API server refuses an object, if the same request would get the same
// answer until something changes; nil if another attempt may succeed.
func refusal(err error) *v1alpha1.Problem {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return nil
	}
	switch s := answer.Status(); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err), apierrors.IsTimeout(err),
		apierrors.IsTooManyRequests(err), apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return nil
	case s.Code < 400 || s.Code >= 500:
		return nil
	default:
		return problem(reasonRefused, "the API server of the hub refuses it: %s; it is retried with back-off", s.Message)
	}
}

// unguard notes that a Grid of a namespace lacks its finalizer. why is nil if another attempt
// may succeed, which counts more than a reason.
func (e *execution) unguard(namespace string, why *v1alpha1.Problem) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if before, found := e.unguarded[namespace]; !found || before != nil {
		e.unguarded[namespace] = why
	}
}

// fail notes that a bundle is not what it is to be. why is nil if another attempt may succeed.
func (t *target) fail(bundle string, why *v1alpha1.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsent[bundle] = why
}

// mentions reports whether the status of the FleetCluster lists a Grid before the execution, or
// names it as withdrawn after it.
func (t *target) mentions(uid string) bool {
	had := slices.ContainsFunc(t.observed.Object.Status.Grids, func(g v1alpha1.ClusterGrid) bool { return g.UID == uid })
	return had || slices.Contains(t.plan.Status.Withdrawn, uid)
}

// has returns the revision that a bundle has after the execution, "" if it is to be absent.
func (t *target) has(bundle string) string {
	if b, written := t.plan.Write[bundle]; written {
		return b.Revision
	}
	if slices.Contains(t.plan.Remove, bundle) {
		return ""
	}
	return t.observed.Bundles[bundle]
}

// newMetadata returns an object to read and write only its metadata.
func newMetadata(kind metav1.TypeMeta, namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
