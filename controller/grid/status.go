package grid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastStatus returns the Grid's status as the cache has it, or the one that we wrote last if the
// cache does not show that yet.
func (r *reconciler) lastStatus(o client.Object, known *remembered) any {
	if status := known.lastStatus(o); status != nil {
		return status
	}
	return r.kind.written(o)
}

// tell derives the status from the observed state after the steps, sends the Events, and writes
// the status if it differs. Events and metrics do not wait for that: they report an API server
// that refuses it. again is after how long it is to be written; 0: it need not be.
func (e *execution) tell(ctx context.Context) (again time.Duration, err error) {
	status := e.kind.status(*e.observed)
	now := e.kind.common(status)
	e.metrics.observe(e.observed.Grid, now)
	e.announce(e.kind.common(e.last), now)
	same, err := sameStatus(e.last, status)
	if same || err != nil {
		return 0, err
	}
	if again := e.known.pause.left(e.now()); again > 0 {
		return again, nil
	}
	return 0, e.writeStatus(ctx, status)
}

// announce sends the Events of the steps, and those about what has changed since the last
// status that was announced, or, after a restart, since the last one that was written.
func (e *execution) announce(last, now v1.WorkloadGridStatus) {
	if e.known.announced != nil {
		last = *e.known.announced
	}
	for _, n := range append(e.notices[:min(len(e.notices), noticesMax)], notices(last, now)...) {
		e.events.Eventf(e.object, nil, n.kind, n.reason, "Reconcile", "%s", excerpt.Fit(n.message, noteMax))
	}
	e.known.announced = new(noticed(now))
}

func (e *execution) writeStatus(ctx context.Context, status any) error {
	g := e.observed.Grid
	patch, err := json.Marshal([]operation{
		{Op: "test", Path: "/metadata/uid", Value: g.UID},
		{Op: "add", Path: "/status", Value: status}, // adds or replaces
	})
	if err != nil {
		return fmt.Errorf("encoding the status of %s %s/%s: %w", g.Kind, g.Namespace, g.Name, err)
	}
	o := e.target()
	err = e.client.Status().Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(Manager))
	if apierrors.IsNotFound(err) {
		return nil // the Grid has gone, which its event tells
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", g.Kind, g.Namespace, g.Name, err)
	}
	e.known.pause.wrote(len(patch), e.now()) // what fails is retried with a back-off
	e.known.wroteStatus(o, status, e.now())
	return nil
}

// pause is the time between two writes of one status. While the Pods of many units start, each of
// their changes would write a large status again.
type pause struct {
	from time.Time
	long time.Duration
}

// The sizes from which a pause follows, and for which it lasts a second, in bytes.
const (
	sizeWithPause  = 10_000
	sizeWithSecond = 100_000
)

// wrote begins the pause after a write of size bytes. Below sizeWithPause there is none.
func (p *pause) wrote(size int, now time.Time) {
	*p = pause{from: now}
	if size >= sizeWithPause {
		p.long = time.Second * time.Duration(size) / sizeWithSecond
	}
}

// left returns how long the pause still lasts, 0 if it is over. It is over if the clock was set
// back.
func (p *pause) left(now time.Time) time.Duration {
	if now.Before(p.from) {
		return 0
	}
	return max(p.long-now.Sub(p.from), 0)
}

// sameStatus reports whether two statuses of a kind are the same. Most are, and in the same bytes.
func sameStatus(a, b any) (bool, error) {
	switch x := a.(type) {
	case v1.DeploymentGridStatus:
		if y := b.(v1.DeploymentGridStatus); equality.Semantic.DeepEqual(x.WorkloadGridStatus, y.WorkloadGridStatus) && sameStates(x.States, y.States) {
			return true, nil
		}
	case v1.StatefulSetGridStatus:
		if y := b.(v1.StatefulSetGridStatus); equality.Semantic.DeepEqual(x.WorkloadGridStatus, y.WorkloadGridStatus) && sameStates(x.States, y.States) {
			return true, nil
		}
	}
	return sameJSON(a, b)
}

func sameStates(a, b map[string]v1.State) bool {
	return maps.EqualFunc(a, b, func(x, y v1.State) bool { return bytes.Equal(x.JSON, y.JSON) })
}

// sameJSON reports whether two values are the same JSON, in which fields may have any order.
func sameJSON(a, b any) (bool, error) {
	var values [2]any
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &values[i])
		}
		if err != nil {
			return false, fmt.Errorf("comparing statuses: %w", err)
		}
	}
	return reflect.DeepEqual(values[0], values[1]), nil
}

// escapePointer writes a name into a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// tellIdle writes expand.IdleCondition of a Grid that another cluster expands, if there is one,
// by server-side apply: the other conditions, and the rest of the status, are not ours.
func (r *reconciler) tellIdle(ctx context.Context, o client.Object) error {
	g := r.kind.read(o)
	condition := expand.IdleCondition(g, r.kind.common(r.kind.written(o)).Conditions, r.now())
	if condition == nil {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1.GridStatus{Conditions: []metav1.Condition{*condition}})
	if err != nil {
		return fmt.Errorf("encoding why %s %s/%s is idle: %w", g.Kind, g.Namespace, g.Name, err)
	}
	idle := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	idle.SetGroupVersionKind(v1.GroupVersion().WithKind(string(g.Kind)))
	idle.SetNamespace(g.Namespace)
	idle.SetName(g.Name)
	idle.SetUID(g.UID)
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(idle), client.FieldOwner(Manager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing why %s %s/%s is idle: %w", g.Kind, g.Namespace, g.Name, err)
	}
	return nil
}
