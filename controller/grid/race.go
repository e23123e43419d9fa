package grid

import (
	"context"
	"time"

	"gridproxy/controller/expand"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// attempts is how often one step applies a child that others write at the same time. All but the first begin with
	// a live read: somebody who writes without pause is always ahead of a cache.
	attempts = 5

	// soon is the pause after all of them were lost. It doubles up to lastPause while that goes on: a webhook may
	// answer like that to everything.
	soon = 50 * time.Millisecond

	// onlyNew is a resourceVersion that no child can have, since etcd's first revisions are older than any object of a
	// cluster. Server-side apply compares it with an object that stands, which gives 409, and ignores it for a new one.
	onlyNew = "1"
)

// race applies a child, and returns the resourceVersion it had before, "" for a new one. Fields are only taken by force
// from a child that is still the Grid's: the garbage collector takes its owner away when the Grid is deleted and its
// children are to stay. Where the name was free, an object that has come there since stays as it is. The error is a
// conflict if the child is another one now, or was written by others each time.
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

// catchUp puts the child as the API server has it into the observed state, and reports whether an apply that was decided before
// may still be made: it overwrites or leaves all of a child but whose it is.
func (e *execution) catchUp(ctx context.Context, s expand.Apply) (bool, error) {
	o := e.kind.newChild()
	err := e.live.Get(ctx, types.NamespacedName{Namespace: e.observed.Grid.Namespace, Name: s.Child.Name}, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := live(o)
	if err != nil {
		return false, err
	}
	if now.UID != s.UID || now.Deleting || now.Owner != e.seen(now.Name).Owner {
		return false, nil
	}
	setChild(e.observed, now)
	return true, nil
}

// afterRace is the pause before the Grid's next turn, 0 for none: outrun says whether in this one a race was lost.
func (r *remembered) afterRace(outrun bool) time.Duration {
	if !outrun {
		r.outrun = 0
		return 0
	}
	pause := min(soon<<min(r.outrun, 16), lastPause)
	r.outrun++
	return pause
}
