package grid

import (
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
)

const metricsPrefix = "grid_controller"

// Metrics counts what happens to Grids. It is a Collector that its creator registers.
// docs/metrics.md lists the metrics.
type Metrics struct {
	unitsLost, unitsFailed, unitsOffline, misplaced, held *prometheus.GaugeVec
	steps                                                 *prometheus.CounterVec
}

// NewMetrics returns metrics that count no Grid yet.
func NewMetrics() *Metrics {
	grid := []string{"kind", "namespace", "name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: metricsPrefix, Name: name, Help: help}, grid)
	}
	return &Metrics{
		unitsLost:    gauge("units_lost", "Units of a Grid that have a child and no Node."),
		unitsFailed:  gauge("units_failed", "Units of a Grid that do not have what it asks for."),
		unitsOffline: gauge("units_offline", "Units of a Grid that have Nodes of which none is ready."),
		misplaced:    gauge("misplaced_pods", "Pods of a Grid on Nodes outside their units."),
		held:         gauge("deletions_held", "1 if children of lost units are not deleted after their grace: most units are lost, or the removal budget is spent."),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: metricsPrefix, Name: "steps_total", Help: "What was done to children and Grids, but for statuses.",
		}, []string{"kind", "step", "result"}),
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.unitsLost, m.unitsFailed, m.unitsOffline, m.misplaced, m.held, m.steps}
}

// Describe sends the descriptions of all metrics to the registry.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect sends the values of all metrics to the registry.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}

func (m *Metrics) observe(g expand.Grid, s v1.WorkloadGridStatus) {
	var misplaced, held float64
	for _, u := range s.Units {
		misplaced += float64(u.Misplaced)
	}
	if meta.IsStatusConditionTrue(s.Conditions, v1.ConditionDeletionHeld) {
		held = 1
	}
	of := gridLabels(g.Kind, types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	m.unitsLost.With(of).Set(float64(s.LostUnits))
	m.unitsFailed.With(of).Set(float64(s.FailedUnits))
	m.unitsOffline.With(of).Set(float64(s.OfflineUnits))
	m.misplaced.With(of).Set(misplaced)
	m.held.With(of).Set(held)
}

func (m *Metrics) forget(k expand.Kind, name types.NamespacedName) {
	for _, g := range []*prometheus.GaugeVec{m.unitsLost, m.unitsFailed, m.unitsOffline, m.misplaced, m.held} {
		g.Delete(gridLabels(k, name))
	}
}

func gridLabels(k expand.Kind, name types.NamespacedName) prometheus.Labels {
	return prometheus.Labels{"kind": string(k), "namespace": name.Namespace, "name": name.Name}
}

func (m *Metrics) stepped(k expand.Kind, s expand.Step, err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.steps.WithLabelValues(string(k), expand.Word(s), result).Inc()
}
