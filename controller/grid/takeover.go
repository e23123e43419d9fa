package grid

import (
	"context"
	"fmt"

	"gridproxy/controller/grid/expand"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// takeOver makes the fields of predecessors ours, and changes nothing else of the child.
// Ownership is written as a whole, so the child is read live, and the write is a conflict if
// another one came between.
func (e *execution) takeOver(ctx context.Context, s expand.Apply) error {
	o, err := e.standsLive(ctx, s)
	if err != nil {
		return fmt.Errorf("taking over %s: %w", e.child(s.Child.Name), err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(o, sets.New(s.TakeOver...), Manager)
	if err != nil {
		return fmt.Errorf("taking over %s from %v: %w", e.child(s.Child.Name), s.TakeOver, err)
	}
	if patch == nil { // the cache is behind
		return nil
	}
	before := e.version(s.Child.Name)
	if err := e.client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("taking over %s from %v: %w", e.child(s.Child.Name), s.TakeOver, err)
	}
	log.FromContext(ctx).Info("taken over", "child", s.Child.Name, "unit", s.Child.Value, "from", s.TakeOver)
	_, err = e.take(o, before)
	return err
}

// wished returns the object to apply. If s has a TemplateHash, it has SuperEdge's label in the
// Pod template if that leaves the template unchanged, so that no Pod is replaced. Only the API
// server knows its defaults, so a live read and a dry run find that out.
func (e *execution) wished(ctx context.Context, s expand.Apply) (*unstructured.Unstructured, error) {
	o := expand.WithFingerprint(s.Child, s.Fingerprint).DeepCopy()
	o.SetUID(s.UID)
	if s.TemplateHash == "" {
		return o, nil
	}
	stands, err := e.standsLive(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", e.child(s.Child.Name), err)
	}
	kept := expand.WithTemplateHash(o, s.TemplateHash)
	tried := kept.DeepCopy()
	err = e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(tried), client.FieldOwner(Manager), client.ForceOwnership, client.DryRunAll)
	switch {
	case err != nil && refusal(err, true) == nil:
		return nil, fmt.Errorf("asking what an apply would change of %s: %w", e.child(s.Child.Name), err)
	case err != nil || expand.SameTemplate(stands, tried):
		return kept, nil //nolint:nilerr // a webhook may refuse a question; the label is not worth a Pod
	default:
		return o, nil
	}
}

// standsLive reads the whole child live. The error is errChanged if it has another UID than s.
func (e *execution) standsLive(ctx context.Context, s expand.Apply) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(e.kind.name.Child())
	err := e.live.Get(ctx, types.NamespacedName{Namespace: e.observed.Grid.Namespace, Name: s.Child.Name}, o)
	if err == nil && o.GetUID() != s.UID {
		err = errChanged
	}
	return o, err
}
