package metrics

import "github.com/prometheus/client_golang/prometheus"

// factory makes metrics under our prefix and registers them.
type factory struct{ reg prometheus.Registerer }

func register[C prometheus.Collector](f factory, c C) C {
	f.reg.MustRegister(c) // panics only for a name that is used twice
	return c
}

func (f factory) gauge(name, help string) prometheus.Gauge {
	return register(f, prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}))
}

func (f factory) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return register(f, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (f factory) counter(name, help string) prometheus.Counter {
	return register(f, prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}))
}

// counterOf registers a counter whose value another component keeps.
func (f factory) counterOf(name, help string, now func() uint64) {
	register(f, prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help},
		func() float64 { return float64(now()) }))
}

// gaugeOf registers a gauge that is 1 while a condition holds. Each scrape asks for it.
func (f factory) gaugeOf(name, help string, holds func() bool) {
	register(f, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help},
		func() float64 { return number(holds()) }))
}

// valueOf registers a gauge whose value each scrape asks for.
func (f factory) valueOf(name, help string, now func() float64) {
	register(f, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, now))
}

// gaugesOf registers a gauge for each value of one label. Each scrape asks for their values.
func (f factory) gaugesOf(name, help, label string, now map[string]func() float64) {
	for value, ask := range now {
		register(f, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: namespace, Name: name, Help: help, ConstLabels: prometheus.Labels{label: value},
		}, ask))
	}
}

// desc describes a metric for collect.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// collect registers metrics that send makes at each scrape. It suits metrics whose series change,
// and metrics that must come from one reading.
func (f factory) collect(send func(chan<- prometheus.Metric), descs ...*prometheus.Desc) {
	register(f, collector{descs, send})
}

type collector struct {
	descs []*prometheus.Desc
	send  func(chan<- prometheus.Metric)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(all chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		all <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(all chan<- prometheus.Metric) { c.send(all) }

func number(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

func (f factory) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return register(f, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels))
}

func (f factory) histogram(name, help string, buckets []float64) prometheus.Histogram {
	return register(f, prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}))
}

func (f factory) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return register(f, prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels))
}
