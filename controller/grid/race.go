package grid

import (
	"context"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/retry"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onlyNew is a resourceVersion that no child can have, because etcd's first revisions are older
// than any object of a cluster. Server-side apply compares it with an existing object, which
// results in 409, and ignores it for a new one.
const onlyNew = "1"

// race applies o, which then holds the answer, and returns the child's previous
// resourceVersion, "" for a new one. Fields are only forced if the child is still the Grid's:
// the garbage collector removes its owner when the Grid is deleted and its children are to
// stay. If the name was free and is occupied now, the object there is not changed. The error is
// a conflict then, or if the child is another one now, or if others wrote it each time.
func (e *execution) race(ctx context.Context, s expand.Apply, o *unstructured.Unstructured) (string, error) {
	wish := client.ApplyConfigurationFromUnstructured(o)
	if s.UID == "" {
		o.SetResourceVersion(onlyNew)
		return "", e.client.Apply(ctx, wish, client.FieldOwner(Manager))
	}
	left := attempts
	if s.Adopt { // the Grid was found alive just before, not before another attempt
		left = 1
	}
	for {
		before := e.version(s.Child.Name)
		o.SetResourceVersion(before)
		err := e.client.Apply(ctx, wish, client.FieldOwner(Manager), client.ForceOwnership)
		if left--; left == 0 || !apierrors.IsConflict(err) {
			return before, err
		}
		same, unread := e.catchUp(ctx, s)
		if unread != nil {
			return before, unread
		}
		if !same {
			return before, err
		}
	}
}

// catchUp updates the child in the observed state by a live read, and reports whether the apply
// may still be made. It may, if the child still has the same UID and owner and is not being
// deleted: an apply overwrites or leaves everything else.
func (e *execution) catchUp(ctx context.Context, s expand.Apply) (bool, error) {
	o := e.kind.newChild()
	err := e.live.Get(ctx, types.NamespacedName{Namespace: e.observed.Grid.Namespace, Name: s.Child.Name}, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now := o.read()
	if now.UID != s.UID || now.Deleting || now.Owner != e.seen(now.Name).Owner {
		return false, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	setChild(e.observed, now)
	return true, nil
}

// afterRace returns the pause before the Grid's next reconcile, 0 for no pause. outrun: a race
// was lost in this one. The pause doubles with each reconcile in a row.
func (r *remembered) afterRace(outrun bool) time.Duration {
	if !outrun {
		r.outrun = 0
		return 0
	}
	pause := retry.Pause(conflictDelay, retryDelayMax, r.outrun)
	r.outrun++
	return pause
}
