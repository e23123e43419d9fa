package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gridproxy/controller/grid/expand"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// release takes the Grid out of a child's owner references, and the child out of the observed
// state. The list is replaced as a whole, so it is read live; the error is errChanged if it is
// not the version of the step. A child that is gone is not an error.
func (e *execution) release(ctx context.Context, s expand.Release) error {
	o := e.metadata()
	key := types.NamespacedName{Namespace: e.observed.Grid.Namespace, Name: s.Name}
	err := e.live.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		dropChild(e.observed, s.Name)
		return nil
	}
	if err == nil && (o.GetUID() != s.UID || o.GetResourceVersion() != s.ResourceVersion) {
		err = errChanged
	}
	if err != nil {
		return fmt.Errorf("releasing %s: %w", e.child(s.Name), err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": s.UID, "resourceVersion": s.ResourceVersion, "ownerReferences": others(o.GetOwnerReferences(), e.observed.Grid.UID),
	}})
	if err != nil {
		return fmt.Errorf("releasing %s: %w", e.child(s.Name), err)
	}
	if err := e.patch(ctx, s.Name, patch, "releasing %s: %w"); err != nil {
		return err
	}
	log.FromContext(ctx).Info("released", "child", s.Name)
	delete(e.known.applied, s.Name)
	dropChild(e.observed, s.Name)
	return nil
}

func others(owners []metav1.OwnerReference, uid types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// prune removes templates that no unit uses from the Grid, and notes that. The patch tests the
// generation and the templates: it fails if one was changed, or used again, in the meantime.
func (e *execution) prune(ctx context.Context, s expand.Prune) error {
	g := e.observed.Grid
	patch := []operation{{Op: "test", Path: "/metadata/uid", Value: g.UID}, {Op: "test", Path: "/metadata/generation", Value: g.Generation}}
	for _, name := range s.Names {
		path := "/spec/templatePool/" + escapePointer(name)
		patch = append(patch,
			operation{Op: "test", Path: path, Value: json.RawMessage(g.Pool[name])},
			operation{Op: "remove", Path: path})
	}
	text, err := json.Marshal(patch)
	if err == nil {
		err = e.client.Patch(ctx, e.target(), client.RawPatch(types.JSONPatchType, text), client.FieldOwner(Manager))
	}
	if err != nil {
		return fmt.Errorf("removing unused templates of %s %s/%s: %w", g.Kind, g.Namespace, g.Name, err)
	}
	log.FromContext(ctx).Info("removed unused templates", "templates", s.Names)
	e.known.pruned = prunedTemplates{generation: g.Generation, names: s.Names}
	e.observed.Pruned = s.Names
	return nil
}

// target returns the Grid as an object to patch: only its namespace and name.
func (e *execution) target() client.Object {
	o := e.kind.newGrid()
	o.SetNamespace(e.object.GetNamespace())
	o.SetName(e.object.GetName())
	return o
}
