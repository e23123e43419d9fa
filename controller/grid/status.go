package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastStatus is the Grid's status. It is the status that we wrote last if the cache does not show
// that yet.
func (r *reconciler) lastStatus(o client.Object, known *remembered) any {
	if status := known.statusAt(o.GetResourceVersion()); status != nil {
		return status
	}
	return r.kind.written(o)
}

// tell derives the status from the observed state after the steps, sends the Events, and writes the
// status. Events and metrics do not wait for that: an API server that refuses a status is what they
// have to report.
func (e *execution) tell(ctx context.Context) error {
	status := e.kind.status(*e.observed)
	now := e.kind.common(status)
	e.metrics.observe(e.observed.Grid, now)
	e.announce(e.kind.common(e.last), now)
	return e.writeStatus(ctx, e.last, status)
}

// announce sends the Events. They are about what has changed since the last status that was
// announced, or, after a restart, since the last one that was written.
func (e *execution) announce(last, now v1.WorkloadGridStatus) {
	if e.known.announced != nil {
		last = *e.known.announced
	}
	for _, n := range append(e.notices, notices(last, now)...) {
		e.events.Eventf(e.object, nil, n.kind, n.reason, "Reconcile", "%s", excerpt.Fit(n.message, maxNote))
	}
	e.known.announced = new(noticed(now))
}

// writeStatus replaces the Grid's status, if it differs.
func (e *execution) writeStatus(ctx context.Context, last, status any) error {
	g := e.observed.Grid
	same, err := sameJSON(last, status)
	if same || err != nil {
		return err
	}
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
	e.known.wroteStatus(e.object.GetResourceVersion(), o.GetResourceVersion(), status)
	return nil
}

// sameJSON compares JSON values, because the order of fields in states is not ours.
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
