package agent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bundles is a reader of GridBundles by namespace and name: it takes the place of an API server.
// Server makes this one request.
type bundles map[string]v1alpha1.GridBundle

func (b bundles) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, exists := b[key.String()]
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gridbundles"}, key.Name)
	}
	*into.(*v1alpha1.GridBundle) = found
	return nil
}

func (b bundles) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// TestServer: a copy is served to who knows its digest, and nothing else is.
func TestServer(t *testing.T) {
	packed, err := archive.Pack([][]byte{[]byte(`{"kind":"DeploymentGrid","metadata":{"name":"pos"}}`)})
	must(t, err)
	b := v1alpha1.GridBundle{Spec: v1alpha1.GridBundleSpec{Digest: archive.Digest(packed), Archive: packed}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	s := &Server{Listener: listener, Reader: bundles{"gridproxy/shop.applied": b, "fleet-west/shop": b}, Log: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	good := archivePath("gridproxy", "shop.applied", b.Spec.Digest)
	for path, want := range map[string]int{
		good: http.StatusOK,
		archivePath("gridproxy", "shop.applied", "sha256:"+strings.Repeat("0", 64)): http.StatusNotFound,
		archivePath("gridproxy", "books.applied", b.Spec.Digest):                    http.StatusNotFound,
		archivePath("fleet-west", "shop", b.Spec.Digest):                            http.StatusNotFound, // the hub's own, for another cluster
		"/": http.StatusNotFound, good + "/": http.StatusNotFound, "/a/b/c/d": http.StatusNotFound,
	} {
		answer, err := http.Get("http://" + listener.Addr().String() + path)
		must(t, err)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want {
			t.Errorf("%s: %s, want %d: %v", path, answer.Status, want, err)
		}
		if want == http.StatusOK && string(body) != string(packed) {
			t.Errorf("%s: other bytes", path)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
