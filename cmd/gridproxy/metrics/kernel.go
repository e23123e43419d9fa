package metrics

import (
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"github.com/prometheus/client_golang/prometheus"
)

// Kernel is what metrics ask of other components. A nil func has no metric.
type Kernel struct {
	// These are called by the syncing goroutine at the end of a run. They must not block.
	Rules           func() []RuleCount
	Servers         func() Servers
	Shadow          func() Shadow               // after a run that succeeded
	Trial           func() bool                 // whether there are chains of a trial beside ours
	OtherProxy      func() bool                 // whether another proxy is suspected to write into our rules
	Quarantined     func() map[rules.Family]int // the number of Service ports that the kernel refuses
	WithoutAffinity func() []rules.Family       // in which the kernel does not support session affinity

	// These are called at each scrape.

	// Packets returns the values of kube-proxy's nfacct counters: packets dropped in state
	// INVALID, and packets accepted for a NodePort on loopback.
	Packets       func() (invalidDropped, localhostAccepted uint64)
	Held          func() bool                   // whether a Snapshot of the cluster is held back
	HeldEndpoints func() int                    // the number of endpoints that are used although not ready
	FromDisk      func() bool                   // whether the state in force was read from disk
	APIProxies    func() topology.ProbedProxies // the node-local API proxies, and whether each answers
	DNS           func() DNS
	Saved         func() Saved
	NodeWatches   func() NodeWatches
}

// NodeWatches counts the watches for Nodes.
type NodeWatches struct {
	Units int // for the Nodes of one unit each
	All   int // for all Nodes
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
	otherProxy                  prometheus.Gauge // nil = a shadow
	quarantined, noAffinity     *prometheus.GaugeVec
	failures, partialFailures   prometheus.Counter
	verifies, repaired          prometheus.Counter
	interrupted                 prometheus.Counter
	verifyPeriod                prometheus.Gauge
	flowsDuration               prometheus.Histogram
	flowsDeleted, flowsOutlived prometheus.Counter
	servers                     *serverMetrics
	shadow                      *shadowMetrics
}

func newKernelMetrics(f factory, kernel Kernel) kernelMetrics {
	if kernel.Packets != nil {
		f.counterOf("iptables_ct_state_invalid_dropped_packets_total", "Packets dropped because conntrack calls them INVALID.",
			func() uint64 { invalid, _ := kernel.Packets(); return invalid })
		f.counterOf("iptables_localhost_nodeports_accepted_packets_total", "Packets accepted for a NodePort on a loopback address.",
			func() uint64 { _, localhost := kernel.Packets(); return localhost })
	}
	if kernel.Held != nil {
		f.gaugeOf("snapshot_held_back", "1 while a Snapshot is held back, because the API server does not list what every cluster has.", kernel.Held)
	}
	newStateMetrics(f, kernel)
	newAPIProxyMetric(f, kernel)
	newDNSMetrics(f, kernel)
	if kernel.NodeWatches != nil {
		f.gaugesOf("node_watches", "Watches for the Nodes of one unit of this node each (unit), and for all Nodes (all).", "nodes", map[string]func() float64{
			"unit": func() float64 { return float64(kernel.NodeWatches().Units) },
			"all":  func() float64 { return float64(kernel.NodeWatches().All) },
		})
	}
	m := kernelMetrics{
		full:            f.histogram("sync_full_proxy_rules_duration_seconds", "Duration of runs that read the kernel back.", seconds()),
		partial:         f.histogram("sync_partial_proxy_rules_duration_seconds", "Duration of runs that wrote only what had changed.", seconds()),
		rulesTotal:      f.gauges("sync_proxy_rules_iptables_total", "Rules of ours in the kernel.", "table", "ip_family"),
		rulesLast:       f.gauge("sync_proxy_rules_iptables_last", "Rules written by the last run, of all tables and families."),
		trial:           f.gauge("trial_chains", "1 if there are chains of a gridproxy with --service-proxy-name, which packets meet before ours."),
		quarantined:     f.gauges("quarantined_services", "Ports of Services whose addresses are rejected, because the kernel refuses their rules.", "ip_family"),
		noAffinity:      f.gauges("without_session_affinity", "1 if the kernel lacks xt_recent, so that Services are served without session affinity.", "ip_family"),
		failures:        f.counter("sync_proxy_rules_iptables_restore_failures_total", "Runs in which the kernel refused rules."),
		partialFailures: f.counter("sync_proxy_rules_iptables_partial_restore_failures_total", "Runs in which the kernel refused rules and that wrote only what had changed; a full run follows."),
		verifies:        f.counter("verify_runs_total", "Runs that compared the kernel with what was written."),
		interrupted:     f.counter("verify_interrupted_total", "Verifications that were interrupted, because a change was to be written first."),
		verifyPeriod:    f.gauge("verify_period_seconds", "Time from the end of a verification to the next: --verify-period, or more where reading the rules takes long."),
		repaired:        f.counter("verify_repaired_chains_total", "Chains that another process had changed and that were repaired."),
		flowsDuration:   f.histogram("conntrack_reconciler_sync_duration_seconds", "Duration of sweeps of the connection tracking table.", seconds()),
		flowsDeleted:    f.counter("conntrack_reconciler_deleted_entries_total", "UDP flows deleted because their endpoint is no longer allowed."),
		flowsOutlived:   f.counter("flows_outliving_closure_total", "TCP and SCTP flows that stayed open to an endpoint which closure excluded; they are not cut."),
	}
	if kernel.OtherProxy != nil {
		m.otherProxy = f.gauge("other_proxy_suspected", "1 if another service proxy is suspected to write into this node's rules again after each repair.")
	}
	if kernel.Servers != nil {
		m.servers = newServerMetrics(f)
	}
	if kernel.Shadow != nil {
		m.shadow = newShadowMetrics(f)
	}
	return m
}

func (m kernelMetrics) observeKernel(r syncer.Result, kernel Kernel) {
	took := r.End.Sub(r.Start).Seconds()
	switch {
	case r.Changes.Interrupted:
		m.interrupted.Inc()
	case r.Verify:
		m.full.Observe(took)
	default:
		m.partial.Observe(took)
	}
	if r.Changes.Verified && !r.Changes.Interrupted {
		m.verifies.Inc()
	}
	m.verifyPeriod.Set(r.VerifyPeriod.Seconds())
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

// observeQuarantine sets the number of quarantined ports, and the lack of affinity, by family.
func (m kernelMetrics) observeQuarantine(kernel Kernel) {
	if kernel.Quarantined == nil || kernel.WithoutAffinity == nil {
		return
	}
	without := kernel.WithoutAffinity()
	for family, n := range kernel.Quarantined() {
		m.quarantined.WithLabelValues(family.String()).Set(float64(n))
		m.noAffinity.WithLabelValues(family.String()).Set(number(slices.Contains(without, family)))
	}
}

// Servers is the state of our virtual servers.
type Servers struct {
	Servers      int // virtual servers
	Destinations int // their real servers
	Draining     int // of Destinations, those that get no new connections but have open ones
	Conflicts    int // desired, but another program has a virtual server at the address
	Refused      int // desired, but refused by the kernel, so that chains take their place
	Degraded     bool
	// Messages are the numbers of netlink messages that changed something, by kind of object.
	Messages map[string]int
}

type serverMetrics struct {
	servers, destinations, draining, conflicts, refused, degraded prometheus.Gauge
	messages                                                      *prometheus.CounterVec
	sent                                                          map[string]int // already counted in messages
}

func newServerMetrics(f factory) *serverMetrics {
	return &serverMetrics{
		servers:      f.gauge("ipvs_virtual_servers", "Virtual servers of ours in the kernel."),
		destinations: f.gauge("ipvs_real_servers", "Real servers of these virtual servers."),
		draining:     f.gauge("ipvs_draining_real_servers", "Real servers that get no new connections and wait for the end of the open ones."),
		conflicts:    f.gauge("ipvs_conflicts", "Virtual servers that are desired and not made, because another program has one at the same address."),
		refused:      f.gauge("ipvs_refused", "Virtual servers that the kernel refused, so that chains of iptables take their place."),
		degraded:     f.gauge("ipvs_degraded", "1 if the kernel would keep sending some clients to a draining real server, so that real servers outside of the unit are deleted at once."),
		messages:     f.counters("ipvs_netlink_messages_total", "Netlink messages sent to change virtual servers, real servers, addresses, sets and their entries.", "object"),
		sent:         map[string]int{},
	}
}

func (m *serverMetrics) observe(now Servers) {
	m.servers.Set(float64(now.Servers))
	m.destinations.Set(float64(now.Destinations))
	m.draining.Set(float64(now.Draining))
	m.conflicts.Set(float64(now.Conflicts))
	m.refused.Set(float64(now.Refused))
	m.degraded.Set(number(now.Degraded))
	for object, n := range now.Messages {
		m.messages.WithLabelValues(object).Add(float64(n - m.sent[object]))
		m.sent[object] = n
	}
}

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

// newAPIProxyMetric makes a metric with a series for each node-local API proxy that is named.
func newAPIProxyMetric(f factory, kernel Kernel) {
	if kernel.APIProxies == nil {
		return
	}
	up := desc("api_proxy_up", "1 while the node-local API proxy answers, so that default/kubernetes leads to it and not to the API servers.", "address")
	f.collect(func(all chan<- prometheus.Metric) {
		for addr, answers := range kernel.APIProxies() {
			all <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, number(answers), addr.String())
		}
	}, up)
}

// Saved is what this process has saved for a start without API server.
type Saved struct {
	Writes  int
	Bytes   int64     // of the last write
	Last    time.Time // the last write
	Failing bool      // the last attempt failed
}

func newStateMetrics(f factory, kernel Kernel) {
	if kernel.HeldEndpoints != nil {
		f.valueOf("held_endpoints", "Endpoints that are used although they are not ready: they turned so in a wave when the API server came back.",
			func() float64 { return float64(kernel.HeldEndpoints()) })
	}
	if kernel.FromDisk != nil {
		f.gaugeOf("state_from_disk", "1 while the state saved on disk is in force, because the API server has not been read since the start.", kernel.FromDisk)
	}
	if kernel.Saved == nil {
		return
	}
	f.counterOf("state_writes_total", "How often the state for a start without API server was saved.", func() uint64 { return uint64(max(kernel.Saved().Writes, 0)) })
	f.gaugeOf("state_not_saved", "1 if the last attempt to save the state failed.", func() bool { return kernel.Saved().Failing })
	f.valueOf("state_bytes", "Size of the state that was saved last.", func() float64 { return float64(kernel.Saved().Bytes) })
	f.valueOf("state_last_saved_timestamp_seconds", "When the state was saved last, in seconds since 1970; 0 = not since the start.", func() float64 {
		if last := kernel.Saved().Last; !last.IsZero() {
			return float64(last.Unix())
		}
		return 0
	})
}
