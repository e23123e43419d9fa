package metrics

import "github.com/prometheus/client_golang/prometheus"

// Shadow is what a comparison found.
type Shadow struct {
	Chains   []ChainCount
	Services int // whose chains differ
}

// ChainCount is the number of chains of ours that differ in one table of one family.
type ChainCount struct {
	Table, Family string // as those of RuleCount
	Chains        int
}

type shadowMetrics struct {
	chains   *prometheus.GaugeVec
	services *prometheus.GaugeVec // without labels: absent, not 0, before the first comparison
}

func newShadowMetrics(f factory) *shadowMetrics {
	return &shadowMetrics{
		chains:   f.gauges("shadow_chains_different", "With --shadow: chains in the kernel that differ from what would be written.", "table", "ip_family"),
		services: f.gauges("shadow_services_different", "With --shadow: Services whose chains differ."),
	}
}

func (m *shadowMetrics) observe(s Shadow) {
	for _, c := range s.Chains {
		m.chains.WithLabelValues(c.Table, c.Family).Set(float64(c.Chains))
	}
	m.services.WithLabelValues().Set(float64(s.Services))
}
