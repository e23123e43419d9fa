package grid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"gridproxy/controller/grid/expand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// remove deletes the child of a lost unit, if live reads show the Grid as it was decided on and
// no Node with the value. Else it returns an error, but nil if the Grid was edited (see later).
func (e *execution) remove(ctx context.Context, s expand.Delete) error {
	if err := e.unchanged(ctx); err != nil {
		return e.later(err, "deleting %s: %w", s.Name)
	}
	if err := e.gone(ctx, s); err != nil {
		return fmt.Errorf("making sure that unit %s has gone before deleting %s: %w", s.Value, e.child(s.Name), err)
	}
	deleted, err := e.delete(ctx, s.Name, s.UID, s.ResourceVersion, metav1.DeletePropagationBackground)
	if err == nil {
		markDeleting(e.observed, s.Name)
	}
	if deleted {
		log.FromContext(ctx).Info("deleted", "child", s.Name, "unit", s.Value, "released", s.Released, "unserved", s.Unserved)
		e.notices = append(e.notices, unitRemoved(s, e.observed.Grid))
	}
	if s.NeedsPlace() && (deleted || vague(err)) {
		e.removed++
	}
	return err
}

// unchanged returns an error unless the API server has the Grid as it was decided on: errGoing,
// errEdited, or the read's. A deletion does not rest on a cache that may miss the correction of
// a mistake.
func (e *execution) unchanged(ctx context.Context) error {
	now, err := e.ask(ctx, e.live)
	if err == nil && wishVersion(now) != wishVersion(e.object) {
		err = errEdited
	}
	return err
}

// later returns an error before a deletion in the format doing: %s for the child, %w for err.
// After errEdited it returns nil and retries: that the cache is behind is not a failure.
func (e *execution) later(err error, doing, child string) error {
	if errors.Is(err, errEdited) {
		e.retry(editedDelay)
		return nil
	}
	return fmt.Errorf(doing, e.child(child), err)
}

// gone returns an error if the API server itself has a Node that a child selects (errReturns),
// or cannot be read.
func (e *execution) gone(ctx context.Context, s expand.Delete) error {
	labels := map[string]string{e.observed.Grid.Key: s.Value}
	maps.Copy(labels, s.Others)
	for key, value := range labels {
		nodes := &metav1.PartialObjectMetadataList{}
		nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := e.live.List(ctx, nodes, client.MatchingLabels{key: value}, client.Limit(1)); err != nil {
			return err
		}
		if len(nodes.Items) > 0 {
			return fmt.Errorf("%w: %s, with label %s", errReturns, nodes.Items[0].Name, key)
		}
	}
	return nil
}

// spend writes into status.removals what the following deletions take from the budget. It
// returns an error also if the API server has an old CRD that drops the field.
func (e *execution) spend(ctx context.Context, s expand.Spend) error {
	g := e.observed.Grid
	removals := expand.Removals(e.observed.Status, s.Count, e.observed.Now)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": g.UID}, "status": map[string]any{"removals": removals}})
	if err != nil {
		return fmt.Errorf("encoding the removals of %s %s/%s: %w", g.Kind, g.Namespace, g.Name, err)
	}
	o := e.target()
	if err := e.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("writing the removals of %s %s/%s, before which nothing is deleted: %w", g.Kind, g.Namespace, g.Name, err)
	}
	if len(e.kind.common(e.kind.written(o)).Removals) == 0 {
		return fmt.Errorf("writing the removals of %s %s/%s, before which nothing is deleted: the API server drops status.removals: "+
			"update the CustomResourceDefinitions: kubectl apply --server-side -f deploy/crds", g.Kind, g.Namespace, g.Name)
	}
	e.last = e.kind.withRemovals(e.last, removals)
	e.known.wroteStatus(o, e.last, e.now())
	e.unspent, e.spent = e.observed.Status, true
	return nil
}

// vague reports whether a request may have been executed although it has failed: all but a refusal
// of the API server.
func vague(err error) bool {
	var status apierrors.APIStatus
	return err != nil && !(errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500)
}
