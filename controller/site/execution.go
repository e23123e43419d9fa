package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

type execution struct {
	*reconciler
	stale map[types.UID]bool // objects that are not what was last written to them
	again atomic.Bool        // something is to be tried again
}

// run executes all steps. A step that fails does not stop the others. An object that is older than
// what was last written to it is skipped until the cache has caught up.
func (e *execution) run(ctx context.Context, p assign.Plan) error {
	stale := func(s assign.Patch) bool { return e.stale[s.UID] }
	units, groups := slices.DeleteFunc(p.Units, stale), slices.DeleteFunc(p.Groups, stale)
	return errors.Join(
		each(ctx, e, kindUnit, p.Create, e.create),
		each(ctx, e, kindNode, p.Nodes, e.node),
		each(ctx, e, kindUnit, units, func(ctx context.Context, s assign.Patch) error { return e.object(ctx, s, &v1alpha2.NodeUnit{}) }),
		each(ctx, e, kindGroup, groups, func(ctx context.Context, s assign.Patch) error { return e.object(ctx, s, &v1alpha2.NodeGroup{}) }),
		each(ctx, e, kindUnit, p.Delete, e.delete),
	)
}

// The kinds of objects that are written, in metrics.
const (
	kindNode  = "Node"
	kindUnit  = "NodeUnit"
	kindGroup = "NodeGroup"
)

// each executes all steps that write to one kind of object, several at the same time, counts
// them, and returns their errors.
func each[T any](ctx context.Context, e *execution, kind string, steps []T, do func(context.Context, T) error) error {
	errs := make([]error, len(steps))
	// If ctx ends, each step returns its error: none is left out.
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), workers, len(steps), func(i int) {
		errs[i] = do(ctx, steps[i])
		e.metrics.wrote(kind, errs[i])
	})
	return errors.Join(errs...)
}

// tolerate requests a retry and returns nil for a conflict: the caches were behind. A missing
// object is nil too. Other errors are returned.
func (e *execution) tolerate(err error) error {
	if apierrors.IsConflict(err) {
		e.again.Store(true)
		return nil
	}
	return client.IgnoreNotFound(err)
}

func (e *execution) create(ctx context.Context, u *v1alpha2.NodeUnit) error {
	err := e.client.Create(ctx, u, client.FieldOwner(assign.Manager))
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache will show it
	}
	if err != nil {
		return fmt.Errorf("creating NodeUnit %s: %w", u.Name, err)
	}
	log.FromContext(ctx).Info("created", "nodeUnit", u.Name)
	return nil
}

// node writes to a Node. Taints and records come first. What follows must meet the version that
// this write has made: nothing that a kubelet writes in between is taken for ours.
func (e *execution) node(ctx context.Context, s assign.NodeStep) error {
	writes := []func(context.Context, *assign.NodeStep) error{e.restricted, e.apply, e.drop, e.recordTaints}
	if s.Overclaims {
		writes = []func(context.Context, *assign.NodeStep) error{e.disclaim}
	}
	for _, write := range writes {
		if err := write(ctx, &s); err != nil {
			if err = e.tolerate(err); err != nil {
				return fmt.Errorf("writing to Node %s: %w", s.Name, err)
			}
			return nil
		}
	}
	log.FromContext(ctx).Info("written", "node", s.Name, "labels", s.Apply != nil, "taints", s.Taints != nil)
	if len(s.Kept) > 0 {
		log.FromContext(ctx).Info("the Node keeps labels of NodeUnits or NodeGroups that are gone, because Grids or Services name the keys; "+
			"to remove them, list the keys in the annotation "+v1alpha2.AnnotationAllowRemoval+" of the Node", "node", s.Name, "labels", s.Kept)
	}
	return nil
}

// disclaim removes our entry from managedFields of a Node that says that we have applied more than
// labels and annotations. The next decision applies what is ours again.
func (e *execution) disclaim(ctx context.Context, s *assign.NodeStep) error {
	e.again.Store(true)
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := e.live.List(ctx, nodes, client.MatchingFields{"metadata.name": s.Name}); err != nil || len(nodes.Items) == 0 {
		return err
	}
	n := &nodes.Items[0]
	at := slices.IndexFunc(n.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == assign.Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
	})
	if at < 0 {
		return nil
	}
	patch := fmt.Appendf(nil, `[{"op": "replace", "path": "/metadata/resourceVersion", "value": %q}, {"op": "remove", "path": "/metadata/managedFields/%d"}]`,
		n.ResourceVersion, at)
	err := e.client.Patch(ctx, n, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(assign.Manager))
	if err == nil {
		e.written.Wrote(n, e.now())
	}
	return err
}

// restricted writes taints with their records, and removes restricted labels with theirs, in one
// patch.
func (e *execution) restricted(ctx context.Context, s *assign.NodeStep) error {
	if s.Taints == nil && len(s.Restricted) == 0 {
		return nil
	}
	labels := map[string]any{} // null would remove all
	for key, value := range s.Restricted {
		labels[key] = value
	}
	patch := map[string]any{"metadata": map[string]any{"uid": s.UID, "resourceVersion": s.ResourceVersion, "labels": labels}}
	if s.Taints != nil {
		patch["spec"] = map[string]any{"taints": *s.Taints}
	}
	return e.patchNode(ctx, s, patch)
}

// apply sets metadata.uid. Without it, an apply would create a Node that has just been deleted.
func (e *execution) apply(ctx context.Context, s *assign.NodeStep) error {
	if s.Apply == nil {
		return nil
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	o.SetName(s.Name)
	o.SetUID(s.UID)
	o.SetResourceVersion(s.ResourceVersion)
	o.SetLabels(s.Apply.Labels)
	o.SetAnnotations(s.Apply.Annotations)
	if err := e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(assign.Manager), client.ForceOwnership); err != nil {
		return err
	}
	s.ResourceVersion = o.GetResourceVersion()
	e.written.Wrote(o, e.now())
	return nil
}

// recordTaints writes the annotation that a release without records reads, if there is room.
func (e *execution) recordTaints(ctx context.Context, s *assign.NodeStep) error {
	if s.TaintRecord == nil {
		return nil
	}
	var record any // none is written as no annotation
	if *s.TaintRecord != "" {
		record = *s.TaintRecord
	}
	err := e.patchNode(ctx, s, map[string]any{"metadata": map[string]any{"uid": s.UID, "annotations": map[string]any{v1alpha2.AnnotationTaints: record}}})
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		log.FromContext(ctx).Info("the Node has no room for an annotation that only an earlier release reads",
			"node", s.Name, "annotation", v1alpha2.AnnotationTaints)
		return nil
	}
	return err
}

func (e *execution) drop(ctx context.Context, s *assign.NodeStep) error {
	if len(s.Drop.Labels)+len(s.Drop.Annotations) == 0 {
		return nil
	}
	nothing := func(keys map[string]string) map[string]any {
		out := map[string]any{}
		for key := range keys {
			out[key] = nil
		}
		return out
	}
	return e.patchNode(ctx, s, map[string]any{"metadata": map[string]any{
		"uid": s.UID, "labels": nothing(s.Drop.Labels), "annotations": nothing(s.Drop.Annotations),
	}})
}

func (e *execution) patchNode(ctx context.Context, s *assign.NodeStep, patch map[string]any) error {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	n.SetName(s.Name)
	err := e.patch(ctx, n, patch)
	if err == nil {
		s.ResourceVersion = n.ResourceVersion
	}
	return err
}

func (e *execution) object(ctx context.Context, s assign.Patch, o client.Object) error {
	o.SetName(s.Name)
	err := e.mainAndStatus(ctx, s, o)
	if err = e.tolerate(err); err != nil {
		return fmt.Errorf("writing to %T %s: %w", o, s.Name, err)
	}
	return nil
}

// mainAndStatus writes to an object and to its status, and then sends the Events of the step.
func (e *execution) mainAndStatus(ctx context.Context, s assign.Patch, o client.Object) error {
	if s.Main != nil {
		patch, metadata := maps.Clone(s.Main), map[string]any{"uid": s.UID, "resourceVersion": s.ResourceVersion}
		if said, ok := s.Main["metadata"].(map[string]any); ok {
			maps.Copy(metadata, said)
		}
		patch["metadata"] = metadata
		if err := e.patch(ctx, o, patch); err != nil {
			return err
		}
	}
	if s.Status != nil {
		if err := e.patch(ctx, o, map[string]any{"metadata": map[string]any{"uid": s.UID}, "status": s.Status}); err != nil {
			return err
		}
	}
	for _, n := range s.News {
		e.events.Eventf(o, nil, corev1.EventTypeWarning, n.Reason, "Reconcile", "%s", excerpt.Message(n.Note))
	}
	return nil
}

// patch sends a JSON merge patch of an object, or of its status, and remembers the version that it
// made.
func (e *execution) patch(ctx context.Context, o client.Object, patch map[string]any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	merge := client.RawPatch(types.MergePatchType, raw)
	if _, isStatus := patch["status"]; isStatus {
		err = e.client.Status().Patch(ctx, o, merge, client.FieldOwner(assign.Manager))
	} else {
		err = e.client.Patch(ctx, o, merge, client.FieldOwner(assign.Manager))
	}
	if err == nil {
		e.written.Wrote(o, e.now())
	}
	return err
}

// delete removes a unit that a group has found. If a Node of it is left, it requests a retry.
func (e *execution) delete(ctx context.Context, s assign.Delete) error {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := e.live.List(ctx, nodes, client.MatchingLabels(s.Labels), client.Limit(1)); err != nil {
		return fmt.Errorf("making sure that no Node is left for NodeUnit %s before deleting it: %w", s.Name, err)
	}
	if len(nodes.Items) > 0 {
		e.again.Store(true)
		return nil
	}
	u := &v1alpha2.NodeUnit{}
	u.Name = s.Name
	err := e.tolerate(e.client.Delete(ctx, u, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}))
	if err != nil {
		return fmt.Errorf("deleting NodeUnit %s: %w", s.Name, err)
	}
	log.FromContext(ctx).Info("deleted", "nodeUnit", s.Name)
	return nil
}
