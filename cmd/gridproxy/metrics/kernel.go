package metrics

import (
	"gridproxy/rules/syncer"

	"github.com/prometheus/client_golang/prometheus"
)

// Kernel is what is asked instead of told. A nil func has nothing to say.
type Kernel struct {
	// Rules is asked by the syncing goroutine at the end of a run; it must not block.
	Rules func() []RuleCount
	// Packets are what the nfacct counters of kube-proxy's rules hold, asked at each scrape:
	// dropped in state INVALID, and accepted for a NodePort on loopback.
	Packets func() (invalidDropped, localhostAccepted uint64)
	// Trial is asked as Rules is: whether chains of a trial stand beside ours.
	Trial func() bool
	// OtherProxy is asked as Rules is: whether another service proxy is suspected to write here;
	// nil = not looked for.
	OtherProxy func() bool
	// Held is asked at each scrape: whether a Snapshot of the cluster is held back; nil = none ever is.
	Held func() bool
	// Quarantined is asked as Rules is: Service ports that the kernel does not take, by family.
	Quarantined func() map[string]int
	// WithoutAffinity is asked as Rules is: the families in which the kernel cannot keep a client at
	// its endpoint.
	WithoutAffinity func() []string
	// Servers is asked as Rules is; nil = there are no virtual servers of ours to keep.
	Servers func() Servers
	// Shadow is asked as Rules is, after a run that succeeded; nil = what differs is written.
	Shadow func() Shadow
}

// RuleCount is the number of rules of ours in one table of one family.
type RuleCount struct {
	Table, Family string // "filter", "nat"; "IPv4", "IPv6"
	Rules         int
}

type kernelMetrics struct {
	full, partial               prometheus.Histogram
	rulesTotal                  *prometheus.GaugeVec
	rulesLast, trial            prometheus.Gauge
	otherProxy                  prometheus.Gauge // nil = not looked for
	quarantined, noAffinity     *prometheus.GaugeVec
	failures, partialFailures   prometheus.Counter
	verifies, repaired          prometheus.Counter
	flowsDuration               prometheus.Histogram
	flowsDeleted, flowsOutlived prometheus.Counter
	servers                     *serverMetrics // nil = no virtual servers
	shadow                      *shadowMetrics // nil = no shadow
}

func newKernelMetrics(f factory, kernel Kernel) kernelMetrics {
	if kernel.Packets != nil {
		f.counterOf("iptables_ct_state_invalid_dropped_packets_total", "Packets dropped because conntrack calls them INVALID.",
			func() uint64 { invalid, _ := kernel.Packets(); return invalid })
		f.counterOf("iptables_localhost_nodeports_accepted_packets_total", "Packets accepted for a NodePort on a loopback address.",
			func() uint64 { _, localhost := kernel.Packets(); return localhost })
	}
	if kernel.Held != nil {
		f.gaugeOf("snapshot_held_back", "1 while the API server does not list what every cluster has, so that what it lists is held back.", kernel.Held)
	}
	var otherProxy prometheus.Gauge
	if kernel.OtherProxy != nil {
		otherProxy = f.gauge("other_proxy_suspected", "1 if another service proxy keeps writing into this node's rules after they were repaired.")
	}
	var servers *serverMetrics
	if kernel.Servers != nil {
		servers = newServerMetrics(f)
	}
	var shadow *shadowMetrics
	if kernel.Shadow != nil {
		shadow = newShadowMetrics(f)
	}
	return kernelMetrics{
		otherProxy:      otherProxy,
		servers:         servers,
		shadow:          shadow,
		full:            f.histogram("sync_full_proxy_rules_duration_seconds", "How long a run took that read the kernel back.", seconds()),
		partial:         f.histogram("sync_partial_proxy_rules_duration_seconds", "How long a run took that wrote only what had changed.", seconds()),
		rulesTotal:      f.gauges("sync_proxy_rules_iptables_total", "Rules of ours in the kernel.", "table", "ip_family"),
		rulesLast:       f.gauge("sync_proxy_rules_iptables_last", "Rules written by the last run, of all tables and families."),
		trial:           f.gauge("trial_chains", "1 if there are chains of a gridproxy with --service-proxy-name, which stand before ours."),
		quarantined:     f.gauges("quarantined_services", "Ports of Services that are refused, because the kernel does not take their rules.", "ip_family"),
		noAffinity:      f.gauges("without_session_affinity", "1 if the kernel lacks xt_recent, so that Services are served without session affinity.", "ip_family"),
		failures:        f.counter("sync_proxy_rules_iptables_restore_failures_total", "Runs in which the kernel refused rules."),
		partialFailures: f.counter("sync_proxy_rules_iptables_partial_restore_failures_total", "Those of them that wrote only what had changed; a full one follows."),
		verifies:        f.counter("verify_runs_total", "Runs that compared the kernel with what was written."),
		repaired:        f.counter("verify_repaired_chains_total", "Chains that were not as we had written them, and were mended."),
		flowsDuration:   f.histogram("conntrack_reconciler_sync_duration_seconds", "How long a sweep of the connection tracking table took.", seconds()),
		flowsDeleted:    f.counter("conntrack_reconciler_deleted_entries_total", "UDP flows deleted because their endpoint is no longer allowed."),
		flowsOutlived:   f.counter("flows_outliving_closure_total", "TCP and SCTP flows that were open to an endpoint when closure shut it out; they end by themselves."),
	}
}

func (m kernelMetrics) observeKernel(r syncer.Result, kernel Kernel) {
	took := r.End.Sub(r.Start).Seconds()
	if r.Verify {
		m.full.Observe(took)
	} else {
		m.partial.Observe(took)
	}
	if r.Changes.Verified {
		m.verifies.Inc()
	}
	m.repaired.Add(float64(r.Changes.Repaired))
	m.rulesLast.Set(float64(r.Changes.Rules))
	if r.Err != nil && !r.Waits {
		m.failures.Inc()
		if !r.Verify {
			m.partialFailures.Inc()
		}
	}
	if kernel.Rules != nil {
		for _, c := range kernel.Rules() {
			m.rulesTotal.WithLabelValues(c.Table, c.Family).Set(float64(c.Rules))
		}
	}
	if kernel.Trial != nil {
		m.trial.Set(number(kernel.Trial()))
	}
	if m.otherProxy != nil {
		m.otherProxy.Set(number(kernel.OtherProxy()))
	}
	m.observeQuarantine(kernel)
	if m.servers != nil {
		m.servers.observe(kernel.Servers())
	}
	if m.shadow != nil && r.Err == nil {
		m.shadow.observe(kernel.Shadow())
	}
	if r.Flows.Took > 0 {
		m.flowsDuration.Observe(r.Flows.Took.Seconds())
	}
	m.flowsDeleted.Add(float64(r.Flows.Deleted))
	m.flowsOutlived.Add(float64(r.Flows.Outlived))
}
