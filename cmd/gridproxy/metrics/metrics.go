package metrics

import (
	"slices"
	"strconv"
	"time"

	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/changes"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "gridproxy"

// Metrics observes the syncer. New makes one.
type Metrics struct {
	start  time.Time // triggers before it are not measured
	kernel Kernel
	seen   topology.Snapshot // of the last run
	held   topology.Snapshot // of the last run that succeeded

	syncDuration        *prometheus.HistogramVec
	lastSync, lastQueue prometheus.Gauge
	programming         prometheus.Histogram
	changes             *changeMetrics
	noLocal             *noLocalMetric
	health              map[string]*prometheus.CounterVec

	familyMetrics
	kernelMetrics
	closureMetrics
}

// changeMetrics count changed objects: all of them, and those that wait for a run that succeeds.
type changeMetrics struct {
	servicesTotal, slicesTotal     prometheus.Counter
	servicesPending, slicesPending prometheus.Gauge
}

// seconds returns kube-proxy's buckets for its own work: 1 ms to 16.4 s.
func seconds() []float64 { return prometheus.ExponentialBuckets(0.001, 2, 15) }

// programmingSeconds returns kube-proxy's buckets for network programming: 0.25 s to 5 min.
func programmingSeconds() []float64 {
	return slices.Concat(
		prometheus.LinearBuckets(0.25, 0.25, 2),
		prometheus.LinearBuckets(1, 1, 59),
		prometheus.LinearBuckets(60, 5, 12),
		prometheus.LinearBuckets(120, 30, 7),
	)
}

// New registers every metric. start is the start of the process.
func New(reg prometheus.Registerer, start time.Time, kernel Kernel) *Metrics {
	f := factory{reg}
	m := &Metrics{
		start:  start,
		kernel: kernel,
		syncDuration: f.histograms("sync_proxy_rules_duration_seconds",
			"How long a run took, both families together, from the Snapshot to the kernel.", seconds(), "result"),
		lastSync:    f.gauge("sync_proxy_rules_last_timestamp_seconds", "When the last run that succeeded ended, in seconds since 1970."),
		lastQueue:   f.gauge("sync_proxy_rules_last_queued_timestamp_seconds", "When the last run was asked for, in seconds since 1970."),
		programming: f.histogram("network_programming_duration_seconds", "From the change of a Service or Pod, by the annotation of the EndpointSlice, to the rules in the kernel.", programmingSeconds()),
		changes: &changeMetrics{
			servicesTotal:   f.counter("sync_proxy_rules_service_changes_total", "Services that were added, changed or removed."),
			slicesTotal:     f.counter("sync_proxy_rules_endpoint_changes_total", "EndpointSlices that were added, changed or removed."),
			servicesPending: f.gauge("sync_proxy_rules_service_changes_pending", "Services whose change is not in the kernel because the last run failed."),
			slicesPending:   f.gauge("sync_proxy_rules_endpoint_changes_pending", "EndpointSlices whose change is not in the kernel because the last run failed."),
		},
		noLocal: newNoLocalMetric(f),
		health: map[string]*prometheus.CounterVec{
			"/healthz": f.counters("proxy_healthz_total", "Answers of /healthz by HTTP status code.", "code"),
			"/livez":   f.counters("proxy_livez_total", "Answers of /livez by HTTP status code.", "code"),
		},
		familyMetrics:  newFamilyMetrics(f),
		kernelMetrics:  newKernelMetrics(f, kernel),
		closureMetrics: newClosureMetrics(f),
	}
	for _, path := range m.health {
		path.WithLabelValues("200")
		path.WithLabelValues("503")
	}
	return m
}

// Answered counts an answer of the health server at /healthz or /livez, and at no other path.
func (m *Metrics) Answered(path string, code int) {
	if c, ok := m.health[path]; ok {
		c.WithLabelValues(strconv.Itoa(code)).Inc()
	}
}

// Synced updates all metrics after a run.
func (m *Metrics) Synced(r syncer.Result) {
	result := "success"
	if r.Err != nil && !r.Waits {
		result = "failure"
	}
	m.syncDuration.WithLabelValues(result).Observe(r.End.Sub(r.Start).Seconds())
	if !r.Queued.IsZero() {
		m.lastQueue.Set(unix(r.Queued))
	}
	m.countChanges(r)
	m.observeFamilies(r)
	m.observeKernel(r, m.kernel)
	m.observeClosure(r.Snapshot, r.View)
	m.noLocal.observe(r.Ruleset)
	m.conflicts.Set(float64(len(r.Ruleset.AddressConflicts)))
	if r.Err == nil {
		m.lastSync.Set(unix(r.End))
		m.observeProgramming(r.End, r.Snapshot)
		m.held = r.Snapshot
	}
	m.seen = r.Snapshot
}

func (m *Metrics) countChanges(r syncer.Result) {
	c := m.changes
	c.servicesTotal.Add(float64(changed(m.seen.Services, r.Snapshot.Services, topology.CompareObjects)))
	c.slicesTotal.Add(float64(changed(m.seen.Slices, r.Snapshot.Slices, topology.CompareObjects)))
	held := m.held
	if r.Err == nil {
		held = r.Snapshot
	}
	c.servicesPending.Set(float64(changed(held.Services, r.Snapshot.Services, topology.CompareObjects)))
	c.slicesPending.Set(float64(changed(held.Slices, r.Snapshot.Slices, topology.CompareObjects)))
}

// observeProgramming measures every EndpointSlice whose trigger is new since the last successful
// run. As kube-proxy, it leaves out triggers from before the start of this process.
func (m *Metrics) observeProgramming(end time.Time, now topology.Snapshot) {
	for old, slice := range changes.Between(m.held.Slices, now.Slices, topology.CompareObjects) {
		if slice == nil {
			continue
		}
		at := slice.Triggered
		if at.Before(m.start) || end.Before(at) || old != nil && old.Triggered.Equal(at) {
			continue
		}
		m.programming.Observe(end.Sub(at).Seconds())
	}
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// changed counts the elements that were added, removed or replaced. An element that is the same
// has the same pointer.
func changed[T any](before, after []*T, compare func(a, b *T) int) int {
	n := 0
	for range changes.Between(before, after, compare) {
		n++
	}
	return n
}

// ObserveBuild registers what the program was built from: a metric that is always 1.
func ObserveBuild(reg prometheus.Registerer, version, commit, goVersion string) {
	f := factory{reg}
	f.gauges("build_info", "1; the labels say what the program was built from.", "version", "commit", "goversion").
		WithLabelValues(version, commit, goVersion).Set(1)
}
