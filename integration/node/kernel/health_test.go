package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

const healthPort = 32000

// A health-check node port tells load balancers how many endpoints the node has, over both
// families, counting only those in its unit; and it is open to the outside.
func TestHealthCheckNodePort(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-2", "bj-3")
		s := newExposed("health", 150)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = healthPort
		w.Serve(s, w.Endpoint("bj-1"), w.Client("bj-1"), w.Endpoint("bj-3"))
		w.run([]string{"bj-1", "bj-2"}, detect()...)
		w.counts("bj-1", 2)
		w.counts("bj-2", 0)

		w.Serve(s, w.Endpoint("bj-1"), w.Endpoint("bj-3"))
		w.apply()
		w.counts("bj-1", 1)

		// Out of every unit, the node may not use even its own endpoint.
		w.relabel("bj-1", "")
		w.counts("bj-1", 0)
	})
}

// counts wants a node's health-check port to say how many endpoints it has.
func (w *world) counts(node string, want int) {
	w.t.Helper()
	code := http.StatusOK
	if want == 0 {
		code = http.StatusServiceUnavailable
	}
	for _, f := range netns.Families() {
		at := netip.AddrPortFrom(w.Lab.Node(node).Addr(f), healthPort)
		w.holds(func(ctx context.Context) error {
			page, err := w.Outside.Get(ctx, at, "/any/path")
			if err != nil {
				return err
			}
			var body struct {
				Service        struct{ Namespace, Name string }
				LocalEndpoints int
			}
			if err := json.Unmarshal(page.Text, &body); err != nil {
				return fmt.Errorf("%s: %w: %s", at, err, page.Text)
			}
			weight := page.Header.Get("X-Load-Balancing-Endpoint-Weight")
			return wait.Check(page.Code == code && weight == fmt.Sprint(want) && body.LocalEndpoints == want && body.Service.Name == "health", "%s says %d, weight %q, %s; want %d and %d endpoints", at, page.Code, weight, page.Text, code, want)
		})
	}
}
