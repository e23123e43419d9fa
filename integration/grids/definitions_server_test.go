package grids

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// definitions is an API server that has the CRDs.
type definitions struct {
	*apiserver.Cluster
	ctx    context.Context
	client dynamic.Interface
}

func newDefinitions(t *testing.T) *definitions {
	t.Helper()
	d := &definitions{Cluster: apiserver.ForTest(t, apiserver.Options{}), ctx: (2 * wait.Usual).Context(t)}
	d.client = apiserver.DynamicForTest(t, d.Admin())
	d.install(t)
	return d
}

// install applies the CRDs and waits until the API server serves them as they are written.
func (d *definitions) install(t *testing.T) {
	t.Helper()
	d.kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", crds)
	d.WaitForDefinitions(t)
	for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
		wait.Until(t, "a "+kind+" without gridUniqKey is refused", func() error {
			return refusedWith(d.create(kind, map[string]any{"template": map[string]any{}}), "is missing")
		})
	}
}

// kubectl is MustKubectl that ends with d.ctx: a deletion waits for as long as a finalizer
// stays.
func (d *definitions) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.KubectlIn(d.ctx, nil, args...)
	must(t, err)
	return out
}

func (d *definitions) of(kind string) dynamic.ResourceInterface {
	resource := schema.GroupVersionResource{Group: "superedge.io", Version: "v1", Resource: strings.ToLower(kind) + "s"}
	return d.client.Resource(resource).Namespace("default")
}

// create makes a Grid of that spec; nothing of it is left.
func (d *definitions) create(kind string, spec map[string]any) error {
	_, err := d.of(kind).Create(d.ctx, newGrid(kind, spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// newGrid is a Grid called grid; its spec is left out if it is nil.
func newGrid(kind string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("superedge.io/v1")
	u.SetKind(kind)
	u.SetNamespace("default")
	u.SetName("grid")
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}

func parse(t *testing.T, text []byte) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, u.UnmarshalJSON(text))
	return u
}

// patch applies a JSON merge patch; subresources are where.
func (d *definitions) patch(kind, name, patch string, subresources ...string) error {
	_, err := d.of(kind).Patch(d.ctx, name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// refusedWith returns an error unless err is the API server's 422 with the text.
func refusedWith(err error, text string) error {
	switch {
	case err == nil:
		return errors.New("it was accepted")
	case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), text):
		return fmt.Errorf("it was refused so: %w", err)
	}
	return nil
}
