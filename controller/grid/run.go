package grid

import (
	"context"
	"errors"
	"slices"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/retry"

	"k8s.io/client-go/util/workqueue"
)

// run begins steps for executionTimeout, and returns their errors joined. A step that fails
// does not stop the others, but after a failed Spend its deletions are left out. The deletion
// of the Grid stops all: an apply would return children to the Grid that the garbage collector
// has just orphaned, and would then delete. And no child is created while no loss can be
// written down: it would look older than the first loss.
func (e *execution) run(ctx context.Context, steps []expand.Step) error {
	e.until = e.now().Add(executionTimeout)
	var errs []error
	unmarked := false
	for len(steps) > 0 && !e.over(ctx) {
		e.observed.Decided = false // the steps change it
		if n := additions(steps); n > 0 {
			errs = append(errs, e.add(ctx, steps[:n], unmarked)...)
			steps = steps[n:]
			continue
		}
		if d, is := steps[0].(expand.Delete); is && d.NeedsPlace() && !e.spent {
			steps = steps[1:] // the error of the Spend is among errs
			continue
		}
		err := e.counted(ctx, steps[0])
		if _, is := steps[0].(expand.MarkLost); is {
			unmarked = err != nil && !e.marked()
		}
		errs = append(errs, err)
		steps = steps[1:]
	}
	if e.spent { // what could not be deleted has not spent its place
		e.observed.Status.Removals = expand.Removals(e.unspent, e.removed, e.observed.Now)
		e.known.removals = &e.observed.Status.Removals
	}
	return errors.Join(errs...)
}

// over reports whether no other step may begin: the Grid is going, or the time is over. In the
// second case it requests another reconcile.
func (e *execution) over(ctx context.Context) bool {
	if _, err := e.ask(ctx, e.client); errors.Is(err, errGoing) {
		return true // what is left to do is seen to by whoever deletes it
	}
	if e.now().Before(e.until) {
		return false
	}
	e.retry(noDelay)
	return true
}

// counted executes a step and counts it.
func (e *execution) counted(ctx context.Context, s expand.Step) error {
	err := e.step(ctx, s)
	e.metrics.stepped(e.kind.name, s, err)
	return err
}

// additions returns how many of the first steps concern one child each and delete nothing, so
// that they do not depend on those of other children.
func additions(steps []expand.Step) int {
	if i := slices.IndexFunc(steps, func(s expand.Step) bool { return added(s) == "" }); i >= 0 {
		return i
	}
	return len(steps)
}

// added returns the name of the child that a step applies or marks as found, "" for other steps.
func added(s expand.Step) string {
	switch s := s.(type) {
	case expand.Apply:
		return s.Child.Name
	case expand.MarkFound:
		return s.Name
	default:
		return ""
	}
}

// add executes additions, those of one child in their order, and waits for all. It returns an
// error or nil for each child. If unmarked is true, it creates no child.
func (e *execution) add(ctx context.Context, steps []expand.Step, unmarked bool) []error {
	var children [][]expand.Step
	index := map[string]int{}
	for _, s := range steps {
		i, found := index[added(s)]
		if !found {
			i = len(children)
			index[added(s)], children = i, append(children, nil)
		}
		children[i] = append(children[i], s)
	}
	errs := make([]error, len(children))
	// If ctx ends, each step returns its error: none is left out.
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), writers, len(children), func(i int) {
		errs[i] = e.addChild(ctx, children[i], unmarked)
	})
	return errs
}

func (e *execution) addChild(ctx context.Context, steps []expand.Step, unmarked bool) error {
	var errs []error
	for _, s := range steps {
		if create, is := s.(expand.Apply); is && create.UID == "" && unmarked {
			continue
		}
		if e.over(ctx) {
			break
		}
		errs = append(errs, e.counted(ctx, s))
	}
	return errors.Join(errs...)
}

// retry requests that the Grid is reconciled again after a pause at the latest.
func (e *execution) retry(pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.again = retry.Earlier(e.again, pause)
}
