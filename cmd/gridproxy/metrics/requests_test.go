package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// TestObserveRequests: a request of client-go is counted and measured by its host, not by its path.
func TestObserveRequests(t *testing.T) {
	registry := prometheus.NewRegistry()
	ObserveRequests(registry)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/one", "/two"} {
		if err := c.RESTClient().Get().AbsPath(path).Do(t.Context()).Error(); err == nil {
			t.Fatal("the server has an answer")
		}
	}
	host := strings.TrimPrefix(server.URL, "http://")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`# HELP rest_client_requests_total Requests to API servers by HTTP status code, method and host.
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="404",host="`+host+`",method="GET"} 2
`), "rest_client_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "rest_client_request_duration_seconds"); n != 1 || err != nil {
		t.Errorf("%d series of durations, %v", n, err)
	}
}
