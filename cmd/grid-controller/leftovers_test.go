package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestLeftovers: a process that is no hub says how many objects have a hub's finalizer and how it
// is removed, and without them, or without the right to look, nothing.
func TestLeftovers(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	guarded := []string{"a/b", v1alpha1.Finalizer}
	objects := []client.Object{
		&v1.ServiceGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "free", Finalizers: []string{"a/b"}}},
		&v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "west", Finalizers: guarded[1:]}},
	}
	for i := range 3 {
		objects = append(objects, &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("pos", i), Finalizers: guarded}})
	}
	forbidden := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	}}
	onlyCluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects[1].DeepCopyObject().(client.Object)).Build()
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	say := func(live client.Reader, namespaces ...string) string {
		var said bytes.Buffer
		l := leftovers{live: live, namespaces: namespaces, log: slog.New(slog.NewTextHandler(&said, nil))}
		if err := l.Start(t.Context()); err != nil {
			t.Error(err)
		}
		return strings.ReplaceAll(said.String(), `\"`, `"`)
	}
	got := say(store)
	for _, want := range []string{
		"kind=DeploymentGrid count=3", "kind=FleetCluster count=1", "patch fleetclusters.superedge.io west ",
		`kubectl --namespace shop patch deploymentgrids.superedge.io pos0 --type=json --patch '[{"op": "test", "path": "/metadata/finalizers/1", "value": "superedge.io/federation"}, ` +
			`{"op": "remove", "path": "/metadata/finalizers/1"}]'`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	if strings.Contains(got, "ServiceGrid") {
		t.Errorf("there is no such ServiceGrid:\n%s", got)
	}
	if got := say(store, "books"); strings.Contains(got, "DeploymentGrid") {
		t.Errorf("another namespace:\n%s", got)
	}
	for what, live := range map[string]client.Reader{
		"no Grids": onlyCluster, "nothing": fake.NewClientBuilder().WithScheme(scheme).Build(), "no rights": interceptor.NewClient(store, forbidden),
	} {
		if got := say(live); got != "" {
			t.Errorf("%s:\n%s", what, got)
		}
	}
}
