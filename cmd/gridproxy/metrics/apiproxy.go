package metrics

import "github.com/prometheus/client_golang/prometheus"

// apiProxyMetric has a series for each node-local API proxy that is named.
type apiProxyMetric struct {
	desc   *prometheus.Desc
	kernel Kernel
}

func newAPIProxyMetric(f factory, kernel Kernel) {
	if kernel.APIProxies == nil {
		return
	}
	name := prometheus.BuildFQName(namespace, "", "api_proxy_up")
	register(f, apiProxyMetric{kernel: kernel, desc: prometheus.NewDesc(name,
		"1 while the node-local API proxy answers, so that default/kubernetes leads to it and not to the API servers.", []string{"address"}, nil)})
}

// Describe implements prometheus.Collector.
func (m apiProxyMetric) Describe(all chan<- *prometheus.Desc) { all <- m.desc }

// Collect implements prometheus.Collector.
func (m apiProxyMetric) Collect(all chan<- prometheus.Metric) {
	for addr, answers := range m.kernel.APIProxies() {
		all <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, number(answers), addr.String())
	}
}
