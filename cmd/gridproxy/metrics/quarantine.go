package metrics

import "slices"

// observeQuarantine sets the number of quarantined Service ports of each family.
func (m kernelMetrics) observeQuarantine(kernel Kernel) {
	if kernel.Quarantined == nil || kernel.WithoutAffinity == nil {
		return
	}
	without := kernel.WithoutAffinity()
	for family, n := range kernel.Quarantined() {
		m.quarantined.WithLabelValues(family).Set(float64(n))
		affinity := m.noAffinity.WithLabelValues(family)
		affinity.Set(0)
		if slices.Contains(without, family) {
			affinity.Set(1)
		}
	}
}
