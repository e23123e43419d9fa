package metrics

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

// TestKubeProxyNames: each metric that docs/metrics.md pairs with one of kube-proxy is served under
// both names, with the same values; no other metric has two names.
func TestKubeProxyNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry, time.Now(), Kernel{})
	m.changes.servicesTotal.Add(3)
	m.Answered("/healthz", 200)
	both := WithKubeProxyNames(registry)
	for _, name := range []string{"sync_proxy_rules_service_changes_total", "proxy_healthz_total"} {
		ours, err := testutil.GatherAndCount(both, "gridproxy_"+name)
		theirs, problem := testutil.GatherAndCount(both, "kubeproxy_"+name)
		if err != nil || problem != nil || ours == 0 || ours != theirs {
			t.Errorf("%s: %d series and %d, %v, %v", name, ours, theirs, err, problem)
		}
	}
	if err := testutil.GatherAndCompare(both, strings.NewReader(`# HELP kubeproxy_sync_proxy_rules_service_changes_total Services that were added, changed or removed.
# TYPE kubeproxy_sync_proxy_rules_service_changes_total counter
kubeproxy_sync_proxy_rules_service_changes_total 3
`), "kubeproxy_sync_proxy_rules_service_changes_total"); err != nil {
		t.Error(err)
	}
	families, err := both.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) }) {
		t.Error("what is served is not sorted")
	}
}

// TestPairs: the pairs are those of the page.
func TestPairs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var page []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		theirs, is := strings.CutPrefix(strings.Trim(cells[1], " `"), "kubeproxy_")
		if ours := strings.Trim(cells[2], " `"); is && ours == "gridproxy_"+theirs {
			page = append(page, theirs)
		}
	}
	compare(t, "pairs", inKubeProxy(), page)
}
