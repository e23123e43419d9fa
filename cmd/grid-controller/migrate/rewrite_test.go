package migrate

import (
	"context"
	"errors"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestRenewSurvivesLostConnections: what may pass is tried again, what the API server decided is
// not. The client is a fake, because no real connection is lost on demand.
func TestRenewSurvivesLostConnections(t *testing.T) {
	resource := schema.GroupResource{Group: "site.superedge.io", Resource: "nodegroups"}
	for name, c := range map[string]struct {
		err   error
		tries int // until it succeeds, or fails for good
		fails bool
	}{
		"connection lost":     {errors.New("http2: client connection lost"), 2, false},
		"conflict":            {apierrors.NewConflict(resource, "a", errors.New("another writer was first")), 2, false},
		"overload":            {apierrors.NewTooManyRequestsError("come back"), 2, false},
		"refused by a policy": {apierrors.NewForbidden(resource, "a", errors.New("no")), 1, true},
		"command interrupted": {context.Canceled, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			o.SetAPIVersion("site.superedge.io/v1alpha2")
			o.SetKind("NodeGroup")
			o.SetName("a")
			tries := 0
			m := &migration{client: interceptor.NewClient(fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(o.DeepCopy()).Build(), interceptor.Funcs{
				Update: func(ctx context.Context, under client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					if tries++; tries == 1 {
						return c.err
					}
					return under.Update(ctx, o, opts...)
				},
			}), Options: Options{Out: io.Discard}}
			if err := m.client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if err := m.renew(t.Context(), o); (err != nil) != c.fails || tries != c.tries {
				t.Errorf("%d tries, error %v; want %d, an error: %t", tries, err, c.tries, c.fails)
			}
		})
	}
}
