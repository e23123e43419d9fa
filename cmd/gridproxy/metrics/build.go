package metrics

import "github.com/prometheus/client_golang/prometheus"

// ObserveBuild registers what the program was built from: a metric that is always 1.
func ObserveBuild(reg prometheus.Registerer, version, commit, goVersion string) {
	f := factory{reg}
	f.gauges("build_info", "1; the labels say what the program was built from.", "version", "commit", "goversion").
		WithLabelValues(version, commit, goVersion).Set(1)
}
