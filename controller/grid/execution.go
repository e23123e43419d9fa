package grid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/retry"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// execution executes the steps of one plan, and updates the observed state accordingly.
type execution struct {
	*reconciler
	object   client.Object // the Grid
	known    *remembered
	observed *expand.Observed
	last     any // the status that was written last

	spent   bool                  // the deletions of this plan are written into status.removals
	unspent v1.WorkloadGridStatus // the status without them
	removed int                   // children of lost units that were deleted and needed a place in the budget

	until  time.Time // no step begins after that
	asking sync.Once // reads the Grid live, once in an execution
	alive  error     // what came of it; nil: it is the same and not being deleted

	// mu guards what follows, known, and in observed Children and Occupants, while children are
	// applied at the same time. It is never held during a request.
	mu      sync.Mutex
	notices []notice
	again   time.Duration // try what could not be done yet after this long; 0: nothing is left
	outrun  bool          // a child was not applied, because others write it all the time or its owner has changed
}

var (
	errChanged = errors.New("it has changed since it was read from the cache")
	errGoing   = errors.New("the Grid is being deleted, or another Grid has its name")
	errReturns = errors.New("the API server has a Node with the value that the cache does not show yet")
	errEdited  = errors.New("the Grid has been edited, and the cache does not show that yet")
)

// marked reports whether any child in the observed state has the annotation unit-lost-at.
func (e *execution) marked() bool {
	return slices.ContainsFunc(e.observed.Children, func(l expand.Live) bool { return l.Annotations.Get(v1.AnnotationLostAt) != "" })
}

func (e *execution) step(ctx context.Context, s expand.Step) error {
	switch s := s.(type) {
	case expand.Apply:
		return e.apply(ctx, s)
	case expand.MarkLost:
		return e.annotate(ctx, s.Name, s.UID, s.At.UTC().Format(time.RFC3339))
	case expand.MarkFound:
		return e.annotate(ctx, s.Name, s.UID, nil)
	case expand.Spend:
		return e.spend(ctx, s)
	case expand.Delete:
		return e.remove(ctx, s)
	case expand.Release:
		return e.release(ctx, s)
	case expand.Replace:
		return e.replace(ctx, s)
	case expand.Prune:
		return e.prune(ctx, s)
	case expand.Evict:
		return e.evict(ctx, s)
	default:
		return fmt.Errorf("executing a step: %T is unknown to this controller", s)
	}
}

func (e *execution) apply(ctx context.Context, s expand.Apply) error {
	owners := e.owners(ctx, s)
	if err := e.prepare(ctx, s); err != nil {
		return err
	}
	o, err := e.wished(ctx, s)
	if err != nil {
		return err
	}
	before, err := e.race(ctx, s, o)
	if err != nil {
		return e.notApplied(ctx, s, owners, err)
	}
	l, err := e.take(o, before)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.repaired(ctx, s, owners, l.Owned)
	delete(e.known.kept, l.Name)
	for _, other := range e.known.retries.take(l.Name) {
		delete(e.known.applied, other)
		e.again = retry.Earlier(e.again, noDelay)
	}
	e.known.applied[l.Name] = expand.Applied{
		UID: l.UID, Desired: s.Fingerprint, Owned: expand.OwnedFingerprint(l.Owned), Before: before, After: l.ResourceVersion,
	}
	if before != l.ResourceVersion {
		log.FromContext(ctx).Info("applied", "child", l.Name, "unit", s.Child.Value, "new", s.UID == "")
	}
	return nil
}

// notApplied remembers why a child was not applied. It returns nil if the API server refused it
// or other writers were faster (409), but an error if that is the second 409 for a new child.
func (e *execution) notApplied(ctx context.Context, s expand.Apply, owners *fieldOwners, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if problem := refusal(err, s.UID != ""); problem != nil {
		log.FromContext(ctx).Info("refused", "child", s.Child.Name, "reason", problem.Reason, "answer", err.Error())
		e.known.applied[s.Child.Name] = expand.Applied{UID: s.UID, Desired: s.Fingerprint, Refused: problem}
		text := expand.Pattern(v1.UnitStatus{Value: s.Child.Value, Child: s.Child.Name, Message: problem.Message})
		e.known.retries.refuse(s.Child.Name, text, forbidden(err), lacksRight(err), e.now())
		e.again = retry.Earlier(e.again, noDelay)
		return nil
	}
	if s.UID != "" && apierrors.IsConflict(err) {
		e.outrun = true
		e.repaired(ctx, s, owners, "")
		return nil
	}
	if s.UID == "" && apierrors.IsConflict(err) && !e.known.taken[s.Child.Name] {
		e.known.taken[s.Child.Name], e.outrun = true, true
		return nil
	}
	return fmt.Errorf("applying %s: %w", e.child(s.Child.Name), err)
}

// prepare does what the step asks for before its apply. Before an adoption it reads the Grid
// live, once in an execution, and returns an error if it cannot or the Grid is going
// (errGoing). Then takeOver and handOver change the owners of fields.
func (e *execution) prepare(ctx context.Context, s expand.Apply) error {
	if s.Adopt {
		// Children may not be adopted on the word of a cache.
		e.asking.Do(func() { _, e.alive = e.ask(ctx, e.live) })
		if e.alive != nil {
			return fmt.Errorf("adopting %s: %w", e.child(s.Child.Name), e.alive)
		}
	}
	if len(s.TakeOver) > 0 {
		if err := e.takeOver(ctx, s); err != nil {
			return err
		}
	}
	if s.HandOver != nil {
		return e.handOver(ctx, s)
	}
	return nil
}

// handOver makes ReplicasManager own the replicas of the child, in the number s.HandOver, so
// that they stay when the following apply leaves them out.
func (e *execution) handOver(ctx context.Context, s expand.Apply) error {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(*s.HandOver)}}}
	o.SetGroupVersionKind(e.kind.name.Child())
	o.SetNamespace(e.observed.Grid.Namespace)
	o.SetName(s.Child.Name)
	o.SetUID(s.UID)
	before := e.version(s.Child.Name)
	if err := e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(ReplicasManager)); err != nil {
		return fmt.Errorf("handing over the replicas of %s: %w", e.child(s.Child.Name), err)
	}
	_, err := e.take(o, before)
	return err
}

// annotate sets unit-lost-at on the child with this UID, or removes it if lostAt is nil. It is
// not part of what is applied, so the next apply leaves it.
func (e *execution) annotate(ctx context.Context, name string, uid types.UID, lostAt any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{v1.AnnotationLostAt: lostAt},
	}})
	if err != nil {
		return fmt.Errorf("writing when the unit of %s was lost: %w", e.child(name), err)
	}
	return e.patch(ctx, name, patch, "writing when the unit of %s was lost: %w")
}

// patch merges into a child, and takes the result into the observed state. doing is the format
// of the error: %s for the child, %w for the cause.
func (e *execution) patch(ctx context.Context, name string, patch []byte, doing string) error {
	o := e.kind.newChild()
	o.SetNamespace(e.observed.Grid.Namespace)
	o.SetName(name)
	before := e.version(name)
	err := e.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager))
	if err != nil {
		return fmt.Errorf(doing, e.child(name), err)
	}
	_, err = e.take(o, before)
	return err
}

func (e *execution) replace(ctx context.Context, s expand.Replace) error {
	if err := e.unchanged(ctx); err != nil {
		return e.later(err, "replacing %s: %w", s.Name)
	}
	propagation := metav1.DeletePropagationBackground
	if s.Orphan {
		propagation = metav1.DeletePropagationOrphan
	}
	e.known.kept[s.Name] = s.Replicas // before the request, whose answer may be lost
	deleted, err := e.delete(ctx, s.Name, s.UID, s.ResourceVersion, propagation)
	if err == nil {
		dropChild(e.observed, s.Name)
	} else if !vague(err) {
		delete(e.known.kept, s.Name)
	}
	if deleted {
		log.FromContext(ctx).Info("deleted, to be created again", "child", s.Name, "unit", s.Value)
	}
	return err
}

// delete deletes a child that still has the UID and version, and reports whether it did. A
// child that is already gone is not an error. Either way it is remembered as deleted.
func (e *execution) delete(ctx context.Context, name string, uid types.UID, version string, propagation metav1.DeletionPropagation) (bool, error) {
	o := &unstructured.Unstructured{} // the client encodes the answer, which is the object while a finalizer holds it
	o.SetGroupVersionKind(e.kind.name.Child())
	o.SetNamespace(e.observed.Grid.Namespace)
	o.SetName(name)
	err := e.client.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(propagation))
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("deleting %s: %w", e.child(name), err)
	}
	delete(e.known.answers, name)
	delete(e.known.applied, name)
	e.known.deleted[name] = uid
	return err == nil, nil
}

// ask reads the Grid. The error is errGoing if the Grid is gone, is being deleted, or is
// another one than that of this execution.
func (e *execution) ask(ctx context.Context, from client.Reader) (now client.Object, err error) {
	now = e.kind.newGrid()
	err = from.Get(ctx, client.ObjectKeyFromObject(e.object), now)
	if apierrors.IsNotFound(err) || err == nil && (now.GetUID() != e.object.GetUID() || now.GetDeletionTimestamp() != nil) {
		err = errGoing
	}
	return now, err
}

// take puts an object that a write returned into the observed state, and remembers it until the
// cache has it. before is the resourceVersion before the write, "" if it created the object.
func (e *execution) take(o client.Object, before string) (expand.Live, error) {
	answer, is := o.(child)
	if u, applied := o.(*unstructured.Unstructured); applied {
		answer, is = e.kind.newChild(), true
		if err := answer.decode(u.Object); err != nil {
			return expand.Live{}, fmt.Errorf("reading the answer to a write of %s: %w", e.child(u.GetName()), err)
		}
	}
	if !is {
		return expand.Live{}, fmt.Errorf("reading the answer to a write of %s: it is %T", e.child(o.GetName()), o)
	}
	l := answer.read()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known.wrote(before, l)
	delete(e.observed.Occupants, l.Name)
	setChild(e.observed, l)
	return l, nil
}

// seen returns the child of that name in the observed state, or a zero Live.
func (e *execution) seen(name string) expand.Live {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.observed.Children {
		if l.Name == name {
			return l
		}
	}
	return expand.Live{}
}

// metadata returns an empty object to read all metadata of a child; a reduced object has little
// of it.
func (e *execution) metadata() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(e.kind.name.Child())
	return o
}

// version returns the resourceVersion of a child in the observed state, "" if it is not there.
func (e *execution) version(name string) string { return e.seen(name).ResourceVersion }

// child returns kind, namespace and name of a child, as messages have them.
func (e *execution) child(name string) string {
	return fmt.Sprintf("%s %s/%s", e.kind.name.Child().Kind, e.observed.Grid.Namespace, name)
}
