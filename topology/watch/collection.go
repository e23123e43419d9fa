package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gridproxy/topology"
	"gridproxy/topology/changes"
	"gridproxy/topology/object"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// collection is all objects of a kind, sorted, as they are in an informer's store. Events only mark
// the objects to look up again, so that nothing can drift.
type collection[T any, P object.Pointer[T]] struct {
	informer cache.SharedIndexInformer
	heard    cache.ResourceEventHandlerRegistration
	changed  pulse

	mu      sync.Mutex
	dirty   map[types.NamespacedName]struct{} // objects that may be others than in sorted
	unseen  bool                              // the last object that was deleted was missing in a list
	sorted  []*T                              // never changed in place
	version int                               // counts changes of sorted
}

// kind is how the objects of a kind are held.
type kind[T any] struct {
	read runtime.Object       // an empty object, as the API server sends it
	trim func(any) (*T, bool) // makes of it what is held; false = it is not one
	// same reports whether two of them differ in nothing but the resource version.
	same func(old, now *T) bool
}

// apiKind returns the kind whose objects are held as API objects, as trim returns them.
func apiKind[T any, P interface {
	*T
	metav1.Object
	runtime.Object
}](trim func(*T) *T) kind[T] {
	return kind[T]{read: P(new(T)), trim: trimmed(trim), same: func(old, now *T) bool {
		version := P(now).GetResourceVersion()
		P(now).SetResourceVersion(P(old).GetResourceVersion())
		defer P(now).SetResourceVersion(version)
		return equality.Semantic.DeepEqual(old, now)
	}}
}

// sliceKind returns the kind of EndpointSlices, which are held as topology.Slices.
func sliceKind(trim *object.Trimmer) kind[topology.Slice] {
	return kind[topology.Slice]{read: &discoveryv1.EndpointSlice{}, trim: trimmed(trim.Slice), same: (*topology.Slice).Equal}
}

func trimmed[D, T any](trim func(*D) *T) func(any) (*T, bool) {
	return func(read any) (*T, bool) {
		full, ok := read.(*D)
		if !ok {
			return nil, false
		}
		return trim(full), true
	}
}

func newCollection[T any, P object.Pointer[T]](a access, k kind[T], changed pulse) (*collection[T, P], error) {
	c := &collection[T, P]{changed: changed, dirty: map[types.NamespacedName]struct{}{}}
	c.informer = cache.NewSharedIndexInformer(a.listerWatcher(), k.read, 0, cache.Indexers{})
	heard, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.mark,
		UpdateFunc: c.markUnlessSame,
		DeleteFunc: c.markDeleted,
	})
	c.heard = heard
	err = errors.Join(err,
		c.informer.SetTransform(c.transform(k)),
		c.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {
			// Failed requests are logged where they are made. A watch that ends is restarted.
		}))
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", a.what, err)
	}
	return c, nil
}

// transform returns a function that trims an object before it is stored. If only the resource
// version changed, it keeps the stored object. A Node's resource version changes with every
// heartbeat, and all objects are listed again after a gap. It must not change its argument,
// which may be in the store.
func (c *collection[T, P]) transform(k kind[T]) cache.TransformFunc {
	return func(read any) (any, error) {
		now, ok := k.trim(read)
		if !ok {
			return read, nil // a tombstone, or what is held already
		}
		if old := c.stored(topology.NameOf(P(now))); old != nil && k.same(old, now) {
			return old, nil
		}
		return now, nil
	}
}

func (c *collection[T, P]) mark(o any) {
	name, err := cache.DeletionHandlingObjectToName(o)
	if err != nil {
		return // not an object: nothing that a Snapshot holds
	}
	c.mu.Lock()
	c.dirty[name.AsNamespacedName()] = struct{}{}
	c.mu.Unlock()
	c.changed.send()
}

// markDeleted marks an object, and notes how the deletion was found: by an event of it, or
// because a new list lacks the object.
func (c *collection[T, P]) markDeleted(o any) {
	_, unseen := o.(cache.DeletedFinalStateUnknown)
	c.mu.Lock()
	c.unseen = unseen
	c.mu.Unlock()
	c.mark(o)
}

func (c *collection[T, P]) markUnlessSame(old, o any) {
	if old != o {
		c.mark(o)
	}
}

func (c *collection[T, P]) run(ctx context.Context) { c.informer.RunWithContext(ctx) }

// read returns a channel that is closed once everything has been read and marked once.
func (c *collection[T, P]) read() <-chan struct{} { return c.heard.HasSyncedChecker().Done() }

// list returns every object, sorted by namespace and name, and a number that changes whenever
// the list does. One goroutine at a time may call it.
func (c *collection[T, P]) list() ([]*T, int) {
	c.mu.Lock()
	dirty := c.dirty
	c.dirty = map[types.NamespacedName]struct{}{}
	c.mu.Unlock()
	if len(dirty) == 0 {
		return c.sorted, c.version
	}
	order := func(o *T, name types.NamespacedName) int {
		return topology.CompareServices(topology.NameOf(P(o)), name)
	}
	now := func(name types.NamespacedName) []*T {
		if o := c.stored(name); o != nil {
			return []*T{o}
		}
		return nil
	}
	names := slices.SortedFunc(maps.Keys(dirty), topology.CompareServices)
	if sorted := changes.Replace(c.sorted, names, order, now); !slices.Equal(sorted, c.sorted) {
		c.sorted = sorted
		c.version++
	}
	return c.sorted, c.version
}

// stored returns the object of a name in the store, or nil.
func (c *collection[T, P]) stored(name types.NamespacedName) *T {
	o, _, _ := c.informer.GetStore().GetByKey(cache.NamespacedNameAsObjectName(name).String()) // never an error
	object, _ := o.(*T)
	return object
}
