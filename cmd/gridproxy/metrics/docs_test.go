package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/topology"

	"github.com/prometheus/client_golang/prometheus"
)

// kubeProxyMetrics are those of kube-proxy 1.36.3 and 1.37.2 on Linux, those behind feature gates
// included, without the prefix.
func kubeProxyMetrics() []string {
	return strings.Fields(`
conntrack_reconciler_deleted_entries_total
conntrack_reconciler_sync_duration_seconds
iptables_ct_state_invalid_dropped_packets_total
iptables_localhost_nodeports_accepted_packets_total
network_programming_duration_seconds
nftables_localhost_nodeport_listener_creation_failures_total
nftables_localhost_nodeport_listeners
nftables_localhost_nodeport_rejected_packets_total
proxy_healthz_total
proxy_livez_total
sync_full_proxy_rules_duration_seconds
sync_partial_proxy_rules_duration_seconds
sync_proxy_rules_duration_seconds
sync_proxy_rules_endpoint_changes_pending
sync_proxy_rules_endpoint_changes_total
sync_proxy_rules_iptables_last
sync_proxy_rules_iptables_partial_restore_failures_total
sync_proxy_rules_iptables_restore_failures_total
sync_proxy_rules_iptables_total
sync_proxy_rules_last_queued_timestamp_seconds
sync_proxy_rules_last_timestamp_seconds
sync_proxy_rules_nftables_cleanup_failures_total
sync_proxy_rules_nftables_sync_failures_total
sync_proxy_rules_no_local_endpoints_total
sync_proxy_rules_service_changes_pending
sync_proxy_rules_service_changes_total`)
}

// names is a registry that records the names of what is registered.
type names struct {
	*prometheus.Registry
	all []string
}

var fqName = regexp.MustCompile(`fqName: "([^"]+)"`)

func (n *names) MustRegister(cs ...prometheus.Collector) {
	n.Registry.MustRegister(cs...)
	for _, c := range cs {
		descs := make(chan *prometheus.Desc)
		go func() { c.Describe(descs); close(descs) }()
		for d := range descs {
			n.all = append(n.all, fqName.FindStringSubmatch(d.String())[1])
		}
	}
}

// TestDocs: docs/metrics.md names every metric of kube-proxy once, and every metric of ours
// and no other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	registry := &names{Registry: prometheus.NewRegistry()}
	New(registry, time.Now(), Kernel{
		Packets: func() (uint64, uint64) { return 0, 0 },
		Servers: func() Servers { return Servers{} },
		Shadow:  func() Shadow { return Shadow{} },

		OtherProxy: func() bool { return false },
		Held:       func() bool { return false },

		NodeWatches: func() NodeWatches { return NodeWatches{} },

		FromDisk:      func() bool { return false },
		Saved:         func() Saved { return Saved{} },
		HeldEndpoints: func() int { return 0 },
		APIProxies:    func() topology.ProbedProxies { return nil },
		DNS:           func() DNS { return DNS{} },
	})

	var theirs, ours []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, cell := range strings.Split(line, "|")[1:3] {
			name := strings.Trim(cell, " `")
			if theirName, ok := strings.CutPrefix(name, "kubeproxy_"); ok {
				theirs = append(theirs, theirName)
			} else if strings.HasPrefix(name, "gridproxy_") {
				ours = append(ours, name)
			}
		}
	}
	compare(t, "kube-proxy's metrics", kubeProxyMetrics(), theirs)
	compare(t, "our metrics", registry.all, ours)
}

func compare(t *testing.T, what string, want, got []string) {
	t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s: docs/metrics.md lacks a row for %s", what, name)
		}
	}
	for i, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s: docs/metrics.md has %s, which does not exist", what, name)
		}
		if i > 0 && got[i-1] == name {
			t.Errorf("%s: docs/metrics.md has %s twice", what, name)
		}
	}
}
