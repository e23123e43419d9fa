package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// kubeProxyPrefix is what kube-proxy's names begin with.
const kubeProxyPrefix = "kubeproxy_"

// inKubeProxy returns the metrics that kube-proxy 1.36 and 1.37 have too, without the prefix.
func inKubeProxy() []string {
	return []string{
		"conntrack_reconciler_deleted_entries_total",
		"conntrack_reconciler_sync_duration_seconds",
		"iptables_ct_state_invalid_dropped_packets_total",
		"iptables_localhost_nodeports_accepted_packets_total",
		"network_programming_duration_seconds",
		"proxy_healthz_total",
		"proxy_livez_total",
		"sync_full_proxy_rules_duration_seconds",
		"sync_partial_proxy_rules_duration_seconds",
		"sync_proxy_rules_duration_seconds",
		"sync_proxy_rules_endpoint_changes_pending",
		"sync_proxy_rules_endpoint_changes_total",
		"sync_proxy_rules_iptables_last",
		"sync_proxy_rules_iptables_partial_restore_failures_total",
		"sync_proxy_rules_iptables_restore_failures_total",
		"sync_proxy_rules_iptables_total",
		"sync_proxy_rules_last_queued_timestamp_seconds",
		"sync_proxy_rules_last_timestamp_seconds",
		"sync_proxy_rules_no_local_endpoints_total",
		"sync_proxy_rules_service_changes_pending",
		"sync_proxy_rules_service_changes_total",
	}
}

// WithKubeProxyNames returns a Gatherer of all metrics of g. Those that kube-proxy has too are
// also there under its names, so that dashboards and alerts for kube-proxy go on working. The
// labels are ours.
func WithKubeProxyNames(g prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		for _, f := range families { // the copies come after what is ranged over
			name, ours := strings.CutPrefix(f.GetName(), namespace+"_")
			if ours && slices.Contains(inKubeProxy(), name) {
				families = append(families, &dto.MetricFamily{Name: new(kubeProxyPrefix + name), Help: f.Help, Type: f.Type, Unit: f.Unit, Metric: f.Metric})
			}
		}
		slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
		return families, err
	})
}
