package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// TestHubAway: a member whose controller starts while the hub is away has an agent all the same,
// which knows that nothing of the hub is known.
func TestHubAway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	away := &rest.Config{Host: server.URL}
	server.Close()
	hub, err := hubAccess(t.Context(), away, "west")
	must(t, err)
	a := New(Config{Cluster: "west", HubAccess: hub, Now: time.Now})
	var observed delivery.Observed
	if err := a.observeHub(t.Context(), &observed); err != nil {
		t.Error(err)
	}
	if observed.Fleet != nil || observed.Bundles != nil {
		t.Errorf("of a hub that is away, %+v and %+v are known", observed.Fleet, observed.Bundles)
	}
}

// TestHubKinds: a cache can list what it watches on the hub.
func TestHubKinds(t *testing.T) {
	hub, err := hubAccess(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, "west")
	must(t, err)
	for _, list := range []runtime.Object{&v1alpha1.FleetClusterList{}, &v1alpha1.GridBundleList{}, &v1alpha1.GridReportList{}} {
		if _, err := hub.Client.IsObjectNamespaced(list); err != nil {
			t.Error(err)
		}
	}
}
