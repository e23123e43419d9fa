package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/retry"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waiting is for Flux, which has not done what it was given.
type waiting struct {
	since time.Time // zero: it fails, and tries again
	asked time.Time // when it was asked to look again
	times int       // how often it was
}

// progress returns how far Flux is with a set, and notes since when Flux is awaited.
func (a *Agent) progress(ctx context.Context, set string, k *unstructured.Unstructured) delivery.Applied {
	now := delivery.Applied{Failure: failure(k), Suspended: suspended(k), Known: inventory(k), Deleting: k.GetDeletionTimestamp() != nil}
	w := a.waits[set]
	switch awaited := a.awaited(ctx, set, k); {
	case !awaited && now.Failure == "":
		delete(a.waits, set)
		return now
	case !awaited:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = a.Now()
	}
	a.waits[set] = w
	now.Busy = !w.since.IsZero() && now.Failure == ""
	now.Idle = !w.since.IsZero() && a.Now().Sub(w.since) > engineGrace
	return now
}

// awaited reports whether Flux has not looked at what is described to it, or at the archive
// that is served. For the archive it is not awaited while it fails or is suspended.
func (a *Agent) awaited(ctx context.Context, set string, k *unstructured.Unstructured) bool {
	observed, _, _ := unstructured.NestedInt64(k.Object, "status", "observedGeneration")
	return observed < k.GetGeneration() || !suspended(k) && failure(k) == "" && !a.settled(ctx, set, k)
}

// idleIn returns after how long a set for which Flux is awaited becomes a problem, or the agent
// asks Flux to look at it again; at most heartbeatPeriod.
func (a *Agent) idleIn() time.Duration {
	soonest := heartbeatPeriod
	for _, w := range a.waits {
		if w.since.IsZero() {
			continue
		}
		for _, at := range []time.Time{w.since.Add(engineGrace + time.Second), w.next()} {
			if left := at.Sub(a.Now()); left > 0 {
				soonest = min(soonest, left)
			}
		}
	}
	return soonest
}

// next returns when the agent asks Flux to look again.
func (w waiting) next() time.Time {
	from := w.since
	if w.asked.After(from) {
		from = w.asked
	}
	return from.Add(retry.Pause(promptDelay, promptDelayMax, max(w.times-1, 0)))
}

// prompt asks Flux to look again at the sets that it seems to have missed. A watch of an API server
// that was restored from a backup misses events: it is ahead of the versions that these have.
func (a *Agent) prompt(ctx context.Context) error {
	var errs []error
	for set, w := range a.waits {
		if w.since.IsZero() || w.next().After(a.Now()) {
			continue
		}
		k, err := a.find(ctx, kustomizationKind(), set)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if k == nil || k.GetDeletionTimestamp() == nil && (suspended(k) || failure(k) != "") {
			continue // a failure is tried again by Flux
		}
		if err := a.request(ctx, k); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("asking Flux to look at Kustomization %s again: %w", k.GetName(), err))
			continue
		}
		w.asked = a.Now()
		w.times++
		a.waits[set] = w
	}
	return errors.Join(errs...)
}

// request asks Flux to look at a Kustomization at once.
func (a *Agent) request(ctx context.Context, k *unstructured.Unstructured) error {
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, requested, a.Now().UTC().Format(time.RFC3339Nano))
	return a.Engine.Client.Patch(ctx, k, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager))
}
