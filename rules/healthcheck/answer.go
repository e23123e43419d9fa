package healthcheck

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// answer is the response to a load balancer. It has the status, the header
// X-Load-Balancing-Endpoint-Weight and the body fields that clients of kube-proxy rely on. Every
// path is answered.
type answer struct {
	service types.NamespacedName
	ready   *atomic.Int64
	healthy func() bool
}

type body struct {
	Service             reference `json:"service"`
	LocalEndpoints      int64     `json:"localEndpoints"`
	ServiceProxyHealthy bool      `json:"serviceProxyHealthy"`
}

type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (a answer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	ready, healthy := a.ready.Load(), a.healthy()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(ready, 10))
	if ready == 0 || !healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// An error here is the client's, who is gone.
	_ = json.NewEncoder(w).Encode(body{
		Service:        reference{Namespace: a.service.Namespace, Name: a.service.Name},
		LocalEndpoints: ready, ServiceProxyHealthy: healthy,
	})
}
