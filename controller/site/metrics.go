package site

import (
	"sync/atomic"

	"gridproxy/controller/site/assign"

	"github.com/prometheus/client_golang/prometheus"
)

const metricsPrefix = "grid_controller_site"

// Metrics reports the state of NodeUnits and NodeGroups as of the last reconcile, and counts what
// was written for them. It is a Collector that its creator registers. docs/metrics.md lists the
// metrics.
type Metrics struct {
	unitNodes, conditions, keptLabels *prometheus.Desc
	writes                            *prometheus.CounterVec
	summary                           atomic.Pointer[assign.Summary]
}

// NewMetrics returns metrics without any unit or group.
func NewMetrics() *Metrics {
	return &Metrics{
		unitNodes: prometheus.NewDesc(metricsPrefix+"_unit_nodes",
			"Nodes of a NodeUnit, by whether they are ready.", []string{"unit", "ready"}, nil),
		conditions: prometheus.NewDesc(metricsPrefix+"_conditions",
			"1 for each condition of a NodeUnit or NodeGroup, which is there while something is wrong.", []string{"kind", "name", "condition"}, nil),
		keptLabels: prometheus.NewDesc(metricsPrefix+"_kept_labels",
			"Nodes that keep a label with this key although the NodeUnit or NodeGroup that put it there is gone, because a Grid or a Service names the key.",
			[]string{"key"}, nil),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricsPrefix + "_writes_total", Help: "Objects that NodeUnits and NodeGroups had written.",
		}, []string{"kind", "result"}),
	}
}

// Describe sends the descriptions of all metrics to the registry.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.unitNodes
	to <- m.conditions
	to <- m.keptLabels
	m.writes.Describe(to)
}

// Collect sends the values of all metrics to the registry.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.writes.Collect(to)
	summary := m.summary.Load()
	if summary == nil {
		return
	}
	for _, u := range summary.Units {
		to <- prometheus.MustNewConstMetric(m.unitNodes, prometheus.GaugeValue, float64(u.Ready), u.Unit, "true")
		to <- prometheus.MustNewConstMetric(m.unitNodes, prometheus.GaugeValue, float64(u.NotReady), u.Unit, "false")
	}
	for _, w := range summary.Wrong {
		to <- prometheus.MustNewConstMetric(m.conditions, prometheus.GaugeValue, 1, w.Kind, w.Name, w.Condition)
	}
	for _, k := range summary.Kept {
		to <- prometheus.MustNewConstMetric(m.keptLabels, prometheus.GaugeValue, float64(k.Nodes), k.Key)
	}
}

func (m *Metrics) wrote(kind string, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.writes.WithLabelValues(kind, result).Inc()
}
