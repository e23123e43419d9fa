package grid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/removal"
	"gridproxy/controller/retry"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciler makes the children of the Grids of one kind what expand says, one Grid at a time.
type reconciler struct {
	kind      kind
	client    client.Client // reads from the caches
	live      client.Reader // reads from the API server
	now       func() time.Time
	grace     time.Duration
	budget    removal.Budget
	maxUnits  int
	newUnits  int
	events    events.EventRecorder
	metrics   *Metrics
	memory    *memory
	misplaced *misplaced

	distributes bool // see Config.Fleet
}

// Reconcile observes a Grid, decides, executes, and reports the result. The queue retries what
// failed. What the API server refuses is not an error but part of the status; retries say when it
// is tried again.
func (r *reconciler) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	o := r.kind.newGrid()
	err := r.client.Get(ctx, q.NamespacedName, o)
	if apierrors.IsNotFound(err) {
		r.memory.forget(q.NamespacedName)
		r.metrics.forget(r.kind.name, q.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading %s %s: %w", r.kind.name, q.NamespacedName, err)
	}
	if r.kind.read(o).Idle() { // its children are reported no more, in metrics either
		r.memory.forget(q.NamespacedName)
		r.metrics.forget(r.kind.name, q.NamespacedName)
		return reconcile.Result{}, r.tellIdle(ctx, o)
	}
	again, err := r.reconcile(ctx, o)
	return reconcile.Result{RequeueAfter: again}, err
}

func (r *reconciler) reconcile(ctx context.Context, o client.Object) (time.Duration, error) {
	known := r.memory.of(client.ObjectKeyFromObject(o), o.GetUID())
	known.see(wishVersion(o))
	last := r.lastStatus(o, known)
	observed, err := r.observe(ctx, o, last, known)
	if err != nil {
		return 0, err
	}
	unsure := r.misplaced.refresh(ctx, observed, known)
	observed.Misplaced = observed.WithGraces(r.memory.misplacedPods(known))
	r.memory.setGraces(known, observed.Misplaced)
	plan, err := r.decide(ctx, &observed, known)
	if err != nil {
		return 0, err
	}
	known.flips = plan.Flips
	e := execution{reconciler: r, object: o, known: known, observed: &observed, last: last, notices: tooManyNew(plan.Refused, observed)}
	failed := e.run(ctx, plan.Steps)
	unnamed, recheck, err := r.checkServices(ctx, observed.Grid, known)
	failed = errors.Join(failed, err)
	e.notices = append(e.notices, unnamed...)
	e.again = retry.Earlier(e.again, recheck)
	e.again = retry.Earlier(e.again, known.afterRace(e.outrun))
	// Children do not wait for what is found out about Pods.
	astray, unsought := r.misplaced.searchOnce(ctx, observed, known)
	if astray { // the status has them at once, the next reconcile evicts them
		observed.Misplaced = observed.WithGraces(r.memory.misplacedPods(known))
		r.memory.setGraces(known, observed.Misplaced)
		observed.Decided = false
		e.retry(noDelay)
	}
	unwritten, err := e.tell(ctx)
	again := retry.Earlier(retry.Earlier(plan.Recheck, e.again), retry.Earlier(unwritten, known.retries.wait(r.now())))
	return again, errors.Join(unsure, failed, unsought, err)
}

// decide returns a plan. It decides again when refused children are to be tried, and when it
// has read into observed what the plan needs. The Grid waits for these objects from the start:
// a foreign one may be deleted at any moment, and no other event would wake the Grid.
func (r *reconciler) decide(ctx context.Context, observed *expand.Observed, known *remembered) (expand.Plan, error) {
	plan := expand.Decide(*observed)
	if known.retry(plan.Blocked, observed.Now) {
		plan = expand.Decide(*observed)
	}
	observed.Decided, observed.Flips = true, plan.Flips
	r.memory.setCollisions(known, plan.Look)
	if len(plan.Look) == 0 {
		clear(known.taken)
		return plan, nil
	}
	if err := r.look(ctx, observed, known, plan.Look); err != nil {
		return plan, err
	}
	r.memory.setCollisions(known, occupied(*observed))
	again := expand.Decide(*observed)
	again.Refused = plan.Refused
	return again, nil
}

// occupied returns the wanted names that foreign objects have.
func occupied(observed expand.Observed) []string {
	var names []string
	for name, o := range observed.Occupants {
		if o != nil {
			names = append(names, name)
		}
	}
	return names
}
