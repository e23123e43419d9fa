package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestRequestsHaveOneLimit: however many clients there are, --kube-api-qps and --kube-api-burst
// limit the sum of their requests, except for those that renew the Lease.
func TestRequestsHaveOneLimit(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound"}`))
	}))
	defer server.Close()
	o := defaults()
	o.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(o.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o.qps, o.burst = 0.001, 3 // the fourth would wait longer than the context allows, and fails at once
	config, _, err := restConfig(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		clients, err := core.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		ask(ctx, clients.RESTClient())
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		ask(ctx, d.RESTClient())
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("%d requests, want 3, which is the burst", n)
	}
	lease, err := coordination.NewForConfig(leaseConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	ask(ctx, lease.RESTClient())
	if n := requests.Load(); n != 4 {
		t.Error("the renewal of the Lease waits for the other requests")
	}
}

// ask makes a request, if the limit allows it. The server has nothing to answer with.
func ask(ctx context.Context, c rest.Interface) { _ = c.Get().AbsPath("/anything").Do(ctx).Error() }
