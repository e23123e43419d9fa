package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/federation/archive"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply makes the copies and Flux's objects what the delivery says. One set's error does not
// keep it from the others.
func (a *Agent) apply(ctx context.Context, d delivery.Delivery) error {
	var errs []error
	for _, set := range slices.Sorted(maps.Keys(d.Apply)) {
		errs = append(errs, a.applySet(ctx, set, d.Apply[set], d.Suspend))
	}
	for _, set := range d.Remove {
		errs = append(errs, a.removeSet(ctx, set, policyDelete))
	}
	for _, set := range d.Stop {
		errs = append(errs, a.stopRemoval(ctx, set))
	}
	for _, set := range slices.Sorted(maps.Keys(d.Revive)) {
		errs = append(errs, a.revive(ctx, set, d.Revive[set], d.Suspend))
	}
	return errors.Join(errs...)
}

// applySet writes first the copy, then where it is served, then what Flux is to do with it. The
// error is errWait while an earlier Kustomization of the set is being deleted.
func (a *Agent) applySet(ctx context.Context, set string, objects []delivery.Object, suspend bool) error {
	doing := "applying the Grids of the hub's namespace " + set
	old, err := a.copyOf(ctx, set)
	if err != nil {
		return wrap(doing, err)
	}
	spec, err := a.copySet(ctx, set, old, objects)
	if err == nil && old != nil && old.Annotations[annotationRemoving] == removalStopped {
		err = a.mark(ctx, set, "") // it is applied again
	}
	if err == nil {
		err = a.describeArtifact(ctx, set, spec)
	}
	if err == nil {
		err = a.describeKustomization(ctx, set, suspend)
	}
	return wrap(doing, err)
}

// copyOf returns the copy of a set, nil if it does not exist.
func (a *Agent) copyOf(ctx context.Context, set string) (*v1alpha1.GridBundle, error) {
	old := &v1alpha1.GridBundle{}
	err := a.Engine.Client.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: copyName(set)}, old)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	return old, wrap("reading the copy", err)
}

// copySet writes a set's copy if it differs from old, which may be nil, and returns its spec.
func (a *Agent) copySet(ctx context.Context, set string, old *v1alpha1.GridBundle, objects []delivery.Object) (v1alpha1.GridBundleSpec, error) {
	revision, files, grids := pack(objects)
	if old != nil && old.Annotations[v1alpha1.AnnotationRevision] == revision && archive.Digest(old.Spec.Archive) == old.Spec.Digest {
		return old.Spec, nil
	}
	packed, err := archive.Pack(files)
	if err != nil {
		return v1alpha1.GridBundleSpec{}, err
	}
	b := &v1alpha1.GridBundle{Spec: v1alpha1.GridBundleSpec{Grids: grids, Digest: archive.Digest(packed), Archive: packed}}
	b.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("GridBundle"))
	b.Namespace, b.Name = a.Namespace, copyName(set)
	b.Annotations = map[string]string{v1alpha1.AnnotationRevision: revision}
	b.Labels = map[string]string{labelApplied: a.Cluster}
	return b.Spec, wrap("writing the copy", a.write(ctx, a.Engine.Client, b))
}

// labelApplied is on a copy: the name of the FleetCluster.
const labelApplied = "superedge.io/applied-to"

// pack returns a set as files, a revision over them, and how many of them are Grids.
func pack(objects []delivery.Object) (revision string, files [][]byte, grids int32) {
	sum := sha256.New()
	for _, o := range objects {
		fmt.Fprintf(sum, "%d:", len(o.JSON))
		sum.Write(o.JSON)
		files = append(files, o.JSON)
		if o.Kind != "Namespace" {
			grids++
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), files, grids
}

// describeArtifact writes where the archive is, unless that is written already.
func (a *Agent) describeArtifact(ctx context.Context, set string, spec v1alpha1.GridBundleSpec) error {
	url := a.ArtifactURL + archivePath(a.Namespace, copyName(set), spec.Digest)
	now, err := a.find(ctx, artifactKind(), set)
	if err != nil {
		return err
	}
	if now == nil {
		o := newObject(artifactKind(), a.Namespace, fluxName(set))
		o.Object["spec"] = map[string]any{}
		if err := a.write(ctx, a.Engine.Client, o); err != nil {
			return fmt.Errorf("writing the ExternalArtifact: %w", err)
		}
	} else if text(now, "status", "artifact", "url") == url && text(now, "status", "artifact", "digest") == spec.Digest {
		return nil
	}
	status := artifactStatus(a.Namespace, set, url, spec.Digest, len(spec.Archive), a.Now())
	err = a.Engine.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner(Manager), client.ForceOwnership)
	return wrap("writing the status of the ExternalArtifact", err)
}

// describeKustomization writes what Flux is to apply, or returns errWait: see applySet.
func (a *Agent) describeKustomization(ctx context.Context, set string, suspend bool) error {
	want := kustomization(a.Namespace, set, suspend, a.KubeConfig)
	now, err := a.find(ctx, kustomizationKind(), set)
	if err != nil {
		return err
	}
	if now != nil && now.GetDeletionTimestamp() != nil {
		return fmt.Errorf("waiting until Kustomization %s is gone, which is being deleted: %w", want.GetName(), errWait)
	}
	if now != nil && covers(now.Object["spec"], want.Object["spec"]) {
		return nil
	}
	return wrap("writing the Kustomization", a.write(ctx, a.Engine.Client, want))
}

var errWait = errors.New("not yet")

// covers reports whether every field that is wanted has its value; others, of defaults, do not
// count.
func covers(now, want any) bool {
	w, isMap := want.(map[string]any)
	if !isMap {
		return equality.Semantic.DeepEqual(now, want)
	}
	n, isMap := now.(map[string]any)
	if !isMap {
		return false
	}
	for field, value := range w {
		if !covers(n[field], value) {
			return false
		}
	}
	return true
}

// annotationRemoving is on a copy whose removal has begun. A process that ends in the middle
// must not have the Grids made again. It is undone only when a removal that was stopped has ended.
const annotationRemoving = "superedge.io/removing"

const (
	removalBegun   = "true"
	removalStopped = "stopped"
)

// removeSet does the next step to end what Flux does with a set: with the policy Delete its
// objects go too. It does not wait: nil may mean that the Kustomization is being deleted. The
// copy goes last, so that what is not finished is found again.
func (a *Agent) removeSet(ctx context.Context, set, policy string) error {
	doing := "removing what was applied of the hub's namespace " + set
	if policy == policyDelete {
		if err := a.mark(ctx, set, removalBegun); err != nil {
			return wrap(doing, err)
		}
	}
	k, err := a.find(ctx, kustomizationKind(), set)
	if err != nil {
		return wrap(doing, err)
	}
	if k != nil {
		return wrap(doing, a.removeKustomization(ctx, k, policy))
	}
	artifact := newObject(artifactKind(), a.Namespace, fluxName(set))
	if err := a.Engine.Client.Delete(ctx, artifact); err != nil && !absent(err) {
		return wrap(doing, err)
	}
	copied, err := a.copyOf(ctx, set)
	if err == nil && copied != nil { // one that says by now that the removal was stopped stays
		err = a.Engine.Client.Delete(ctx, copied.DeepCopy(), client.Preconditions{ResourceVersion: &copied.ResourceVersion})
	}
	if err != nil && !absent(err) {
		return wrap(doing, err)
	}
	delete(a.waits, set)
	return nil
}

// mark writes annotationRemoving of the copy, if there is one; "" removes it. A removal that
// was stopped does not begin again before it has ended.
func (a *Agent) mark(ctx context.Context, set, as string) error {
	old, err := a.copyOf(ctx, set)
	if err != nil || old == nil {
		return err
	}
	if now := old.Annotations[annotationRemoving]; now == as || now == removalStopped && as == removalBegun {
		return nil
	}
	value := fmt.Sprintf("%q", as)
	if as == "" {
		value = "null"
	}
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %s}}}`, annotationRemoving, value)
	return a.Engine.Client.Patch(ctx, old.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager))
}

// stopRemoval marks the copy, and suspends a Kustomization that is being deleted: Flux then
// lets it go and removes nothing more. If it is not being deleted, the mark goes again.
func (a *Agent) stopRemoval(ctx context.Context, set string) error {
	doing := "stopping the removal of what was applied of the hub's namespace " + set
	if err := a.mark(ctx, set, removalStopped); err != nil {
		return wrap(doing, err)
	}
	k, err := a.find(ctx, kustomizationKind(), set)
	if err != nil || k == nil {
		return wrap(doing, err)
	}
	if suspended(k) && k.GetDeletionTimestamp() != nil {
		return nil
	}
	k = k.DeepCopy() // the answer is the newest version
	err = a.Engine.Client.Patch(ctx, k, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"suspend": true}}`)), client.FieldOwner(Manager))
	switch {
	case err != nil:
		return wrap(doing, client.IgnoreNotFound(err))
	case k.GetDeletionTimestamp() == nil: // its deletion has not begun
		return wrap(doing, a.mark(ctx, set, ""))
	default:
		return nil
	}
}

// revive applies what a removal has left of the objects, as it reads live, so that Flux knows
// it. If nothing is left, it removes the set.
func (a *Agent) revive(ctx context.Context, set string, objects []delivery.Object, suspend bool) error {
	doing := "applying what the removal has left of the hub's namespace " + set
	var alive []delivery.Object
	for _, o := range objects {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(v1.GroupVersion().WithKind(o.Kind))
		err := a.Target.Live.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, live)
		if client.IgnoreNotFound(err) != nil {
			return wrap(doing, err)
		}
		from := live.Annotations[v1alpha1.AnnotationFrom]
		if err == nil && live.DeletionTimestamp == nil && (from == o.From || from == "") {
			alive = append(alive, o)
		}
	}
	if len(alive) == 0 {
		return a.removeSet(ctx, set, policyDelete)
	}
	return a.applySet(ctx, set, alive, suspend)
}

// removeKustomization begins to delete it with a policy, also if it is suspended.
func (a *Agent) removeKustomization(ctx context.Context, k *unstructured.Unstructured, policy string) error {
	if k.GetDeletionTimestamp() != nil && text(k, "spec", "deletionPolicy") == policy {
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec": {"deletionPolicy": %q, "suspend": false}}`, policy)
	if err := a.Engine.Client.Patch(ctx, k.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Manager)); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(a.Engine.Client.Delete(ctx, k))
}

// find reads Flux's object for a set from the cache, and returns nil if it does not exist.
func (a *Agent) find(ctx context.Context, kind schema.GroupVersionKind, set string) (*unstructured.Unstructured, error) {
	found := newObject(kind, a.Namespace, fluxName(set))
	err := a.Engine.Client.Get(ctx, client.ObjectKeyFromObject(found), found)
	if absent(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, fluxName(set), err)
	}
	return found, nil
}

// write applies an object without its status, server-side, and takes its fields from others.
func (a *Agent) write(ctx context.Context, to client.Client, o client.Object) error {
	u, is := o.(*unstructured.Unstructured)
	if !is {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", o.GetName(), err)
		}
		u = &unstructured.Unstructured{Object: fields}
		delete(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return to.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(Manager), client.ForceOwnership)
}
