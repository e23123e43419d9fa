package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch is a watch of one kind that may not be served yet, or not be reachable.
type watch struct {
	cache  cache.Cache
	object client.Object
	on     toolscache.ResourceEventHandler
	now    func() time.Time

	informer   cache.Informer
	registered toolscache.ResourceEventHandlerRegistration
	begun      time.Time
}

// end ends the events: others may use the cache longer.
func (f *watch) end() {
	if f.informer != nil {
		_ = f.informer.RemoveEventHandler(f.registered) // it ends with the cache otherwise
	}
}

// synced begins to watch, if it does not yet, and reports whether the cache has everything;
// false without an error: not yet. It returns an error if it cannot watch, or if the first list
// takes more than watchGrace.
func (f *watch) synced(ctx context.Context) (bool, error) {
	if f.informer == nil {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		informer, err := f.cache.GetInformer(ctx, f.object, cache.BlockUntilSynced(false))
		if err != nil {
			return false, err
		}
		if f.registered, err = informer.AddEventHandler(f.on); err != nil {
			return false, err
		}
		f.informer, f.begun = informer, f.now()
	}
	synced := f.informer.HasSynced()
	if !synced && f.now().Sub(f.begun) > watchGrace {
		return false, fmt.Errorf("%T: %w for %s: see whether its API server answers, and whether the rights of docs/federation.md are given",
			f.object, errUnlisted, watchGrace)
	}
	return synced, nil
}

var errUnlisted = errors.New("it cannot be listed")

// wake returns a handler that signals a change on a channel, without waiting.
func wake(changed chan<- struct{}) toolscache.ResourceEventHandler {
	say := func() {
		select {
		case changed <- struct{}{}:
		default: // it is signalled already
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { say() }, UpdateFunc: func(any, any) { say() }, DeleteFunc: func(any) { say() },
	}
}
