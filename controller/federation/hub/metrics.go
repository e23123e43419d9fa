package hub

import (
	"strings"
	"sync/atomic"

	"gridproxy/controller/api/v1alpha1"

	"github.com/prometheus/client_golang/prometheus"
)

const metricsPrefix = "grid_controller_fleet"

// Metrics reports the state of FleetClusters as of the last reconcile, and counts what was written
// for them. It is a Collector that its creator registers. docs/metrics.md lists the metrics.
type Metrics struct {
	clusters, grids, bundleBytes *prometheus.Desc
	writes                       *prometheus.CounterVec
	summary                      atomic.Pointer[summary]
}

// summary is what metrics say after a decision.
type summary struct {
	clusters map[string]int // by state
	grids    map[string]int // by state
	bytes    map[string]int // of the largest bundle, by cluster
}

// summarize counts the rows of the statuses that FleetClusters have now. Of Grids it names three
// states, and calls all others failed: a member may choose their names.
func summarize(l lists, statuses map[string]v1alpha1.FleetClusterStatus) *summary {
	s := &summary{clusters: map[string]int{}, grids: map[string]int{}, bytes: map[string]int{}}
	for name, status := range statuses {
		s.clusters[status.State]++
		s.bytes[name] = 0
		for _, g := range status.Grids {
			switch g.State {
			case "Current", "Behind", "Waiting":
				s.grids[g.State]++
			default:
				s.grids["Failed"]++
			}
		}
	}
	for i := range l.bundles {
		name, _ := strings.CutPrefix(l.bundles[i].Namespace, v1alpha1.NamespacePrefix)
		if largest, exists := s.bytes[name]; exists && isOurs(&l.bundles[i]) {
			s.bytes[name] = max(largest, bundleBytes(&l.bundles[i]))
		}
	}
	return s
}

// NewMetrics returns metrics that count no FleetCluster yet.
func NewMetrics() *Metrics {
	return &Metrics{
		clusters: prometheus.NewDesc(metricsPrefix+"_clusters",
			"FleetClusters, by the state in their status.", []string{"state"}, nil),
		grids: prometheus.NewDesc(metricsPrefix+"_grids",
			"Grids in clusters, by their state there: Current, Behind, Waiting, or Failed.", []string{"state"}, nil),
		bundleBytes: prometheus.NewDesc(metricsPrefix+"_bundle_bytes",
			"Bytes of the largest GridBundle of a cluster, packed.", []string{"cluster"}, nil),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricsPrefix + "_writes_total", Help: "Objects of the hub that the distribution of Grids had written.",
		}, []string{"kind", "result"}),
	}
}

// Describe sends the descriptions of all metrics to the registry.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.clusters
	to <- m.grids
	to <- m.bundleBytes
	m.writes.Describe(to)
}

// Collect sends the values of all metrics to the registry.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.writes.Collect(to)
	s := m.summary.Load()
	if s == nil {
		return
	}
	for desc, values := range map[*prometheus.Desc]map[string]int{m.clusters: s.clusters, m.grids: s.grids, m.bundleBytes: s.bytes} {
		for label, value := range values {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), label)
		}
	}
}

func (m *Metrics) wrote(kind string, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.writes.WithLabelValues(kind, result).Inc()
}
