package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// errOther: the object is another one by now, or is being deleted.
var errOther = errors.New("it has been deleted")

// guard adds the finalizer to a Grid. If that fails it notes that the Grid's namespace is
// unguarded; it returns only errors that tolerate does not forgive.
func (e *execution) guard(ctx context.Context, r plan.Ref) error {
	err := e.addFinalizer(ctx, r)
	if err == nil {
		log.FromContext(ctx).Info("distributing", "kind", r.Kind, "grid", r.Namespace+"/"+r.Name)
		return nil
	}
	e.unguard(r.Namespace, refusal(err))
	return e.tolerate(err, "adding the finalizer %s to %s", v1alpha1.Finalizer, r)
}

// addFinalizer adds it to the Grid as it is by now. It returns errOther if that is deleted.
func (e *execution) addFinalizer(ctx context.Context, r plan.Ref) error {
	o, err := e.metadataOf(r)
	for left := attempts; err == nil; left-- {
		if string(o.UID) != r.UID || o.DeletionTimestamp != nil {
			return errOther
		}
		if slices.Contains(o.Finalizers, v1alpha1.Finalizer) {
			e.written.versions.Wrote(o, e.now())
			return nil
		}
		err = e.setFinalizers(ctx, o, append(slices.Clone(o.Finalizers), v1alpha1.Finalizer))
		if left == 1 || !apierrors.IsConflict(err) {
			return err
		}
		err = e.live.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	return err
}

// metadataOf returns the metadata of a Grid as it was observed, or errOther if it was not
// observed.
func (e *execution) metadataOf(r plan.Ref) (*metav1.PartialObjectMetadata, error) {
	g := e.grids[r.UID]
	if g == nil {
		return nil, errOther
	}
	o := newMetadata(metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: r.Kind}, r.Namespace, r.Name)
	o.UID, o.ResourceVersion = g.GetUID(), g.GetResourceVersion()
	o.Finalizers, o.DeletionTimestamp = g.GetFinalizers(), g.GetDeletionTimestamp()
	return o, nil
}

// setFinalizers writes an object's finalizers, or returns a conflict if the object has changed.
func (e *execution) setFinalizers(ctx context.Context, o client.Object, all []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "finalizers": all,
	}})
	if err != nil {
		return err
	}
	err = e.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager))
	if err == nil {
		e.written.versions.Wrote(o, e.now())
	}
	return err
}

func without(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == v1alpha1.Finalizer })
}

func (e *execution) guardCluster(ctx context.Context, t *target) error {
	err := e.setFinalizers(ctx, t.object, append(without(t.object.Finalizers), v1alpha1.Finalizer))
	t.failed = err != nil
	return e.tolerate(err, "adding the finalizer %s to FleetCluster %s", v1alpha1.Finalizer, t.plan.Name)
}

// releaseCluster removes a FleetCluster's finalizer, if all other steps for it succeeded.
func (e *execution) releaseCluster(ctx context.Context, t *target) error {
	if t.failed || len(t.unsent) > 0 {
		return nil
	}
	err := e.setFinalizers(ctx, t.object, without(t.object.Finalizers))
	return e.tolerate(err, "removing the finalizer %s from FleetCluster %s", v1alpha1.Finalizer, t.plan.Name)
}

// release removes the finalizer of Grids that are in no cluster any more, except after a failed
// step. While the API server shows other FleetClusters or bundles, it only requests a retry.
func (e *execution) release(ctx context.Context, all []plan.Ref) []error {
	byNamespace := map[string][]plan.Ref{}
	for _, r := range all {
		if e.isWithdrawn(r) {
			byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
		}
	}
	if len(byNamespace) == 0 {
		return nil
	}
	if current, err := e.clustersAreCurrent(ctx); err != nil || !current {
		e.again.Store(true)
		return []error{err}
	}
	return each(slices.Sorted(maps.Keys(byNamespace)), ignored, func(namespace string) error {
		current, err := e.bundlesAreCurrent(ctx, namespace)
		if err != nil || !current {
			e.again.Store(true)
			return err
		}
		return joined(each(byNamespace[namespace], e.counted(kindGrid), func(r plan.Ref) error { return e.removeFinalizer(ctx, r) }))
	})
}

// isWithdrawn reports whether every step succeeded that has to come before a Grid loses its
// finalizer.
func (e *execution) isWithdrawn(r plan.Ref) bool {
	for _, t := range e.targets {
		if _, unsent := t.unsent[r.Namespace]; unsent || t.failed && t.mentions(r.UID) {
			return false
		}
	}
	return true
}

// clustersAreCurrent asks the API server whether the FleetClusters are those that the decision
// rests on.
func (e *execution) clustersAreCurrent(ctx context.Context) (bool, error) {
	var l metav1.PartialObjectMetadataList
	l.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("FleetClusterList"))
	if err := e.live.List(ctx, &l); err != nil {
		return false, fmt.Errorf("making sure that no FleetCluster has changed before removing finalizers: %w", err)
	}
	for _, o := range l.Items {
		if t := e.targets[o.Name]; t == nil || !t.failed && t.object.ResourceVersion != o.ResourceVersion {
			return false, nil
		}
	}
	return true, nil
}

// bundlesAreCurrent asks the API server whether the bundles of a namespace of Grids are what the
// decision rests on. A cache that is behind may not show one that still has a Grid.
func (e *execution) bundlesAreCurrent(ctx context.Context, namespace string) (bool, error) {
	var l metav1.PartialObjectMetadataList
	l.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("GridBundleList"))
	if err := e.live.List(ctx, &l, client.MatchingFields{"metadata.name": namespace}, client.HasLabels{v1alpha1.LabelCluster}); err != nil {
		return false, fmt.Errorf("making sure that the bundles of namespace %s are current before removing finalizers: %w", namespace, err)
	}
	for _, o := range l.Items {
		name, _ := strings.CutPrefix(o.Namespace, v1alpha1.NamespacePrefix)
		if t := e.targets[name]; t != nil && t.has(namespace) != o.Annotations[v1alpha1.AnnotationRevision] {
			return false, nil
		}
	}
	return true, nil
}

// removeFinalizer removes it, or requests a retry if the Grid has another version by now.
func (e *execution) removeFinalizer(ctx context.Context, r plan.Ref) error {
	o, err := e.metadataOf(r)
	if err == nil {
		err = e.setFinalizers(ctx, o, without(o.Finalizers))
	}
	if err == nil {
		log.FromContext(ctx).Info("withdrawn from all clusters", "kind", r.Kind, "grid", r.Namespace+"/"+r.Name)
	}
	return e.tolerate(err, "removing the finalizer %s from %s", v1alpha1.Finalizer, r)
}
