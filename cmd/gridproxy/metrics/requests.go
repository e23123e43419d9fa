package metrics

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientmetrics "k8s.io/client-go/tools/metrics"
)

// requestMetrics count the requests to API servers, under the names that all programs of Kubernetes
// have for them. Only the configured API servers are hosts, so there are few series.
type requestMetrics struct {
	results *prometheus.CounterVec
	latency *prometheus.HistogramVec
}

// ObserveRequests makes client-go count its requests in reg. Only the first call in a process
// does so.
func ObserveRequests(reg prometheus.Registerer) {
	m := requestMetrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Requests to API servers by HTTP status code, method and host.",
		}, []string{"code", "method", "host"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rest_client_request_duration_seconds", Help: "How long requests to API servers took until the answer began, by verb and host.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60},
		}, []string{"verb", "host"}),
	}
	reg.MustRegister(m.results, m.latency) // panics only for a name that is used twice
	clientmetrics.Register(clientmetrics.RegisterOpts{RequestResult: m, RequestLatency: m})
}

// Increment counts a request.
func (m requestMetrics) Increment(_ context.Context, code, method, host string) {
	m.results.WithLabelValues(code, method, host).Inc()
}

// Observe measures a request.
func (m requestMetrics) Observe(_ context.Context, verb string, u url.URL, latency time.Duration) {
	m.latency.WithLabelValues(verb, u.Host).Observe(latency.Seconds())
}
