package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"
)

// TestSumsFollowHistory: over any history, what is counted over all Services is what is counted
// from the last run alone.
func TestSumsFollowHistory(t *testing.T) {
	leftOut := 0
	rapid.Check(t, func(t *rapid.T) {
		var views topology.Memo
		var compiler rules.Memo
		kept, registry := newSums()
		s := topologytest.Snapshot(t)
		for range rapid.IntRange(2, 12).Draw(t, "runs") {
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				s = topologytest.Change(t, s)
			}
			run := syncer.Result{Snapshot: s}
			if rapid.IntRange(0, 9).Draw(t, "decided") > 0 {
				run.View = views.Resolve(s, topology.Config{})
				run.Ruleset = compiler.Compile(run.View, rules.Config{})
			}
			kept.Synced(run)
			fresh, once := newSums()
			fresh.Synced(run)
			want, got := sums(t, once), sums(t, registry)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-counted from scratch +counted by what changed):\n%s", diff)
			}
			if got, want := kept.Services(), fresh.Services(); got != want || got.Refused > got.Closed || got.Closed > got.All {
				t.Fatalf("Services %+v, counted from scratch %+v", got, want)
			}
			leftOut += strings.Count(strings.Join(got, " "), "endpoints_left_out reason")
		}
	})
	if leftOut == 0 {
		t.Error("nothing was ever left out: the histories drawn test nothing")
	}
}

func newSums() (*Metrics, *prometheus.Registry) {
	registry := prometheus.NewPedanticRegistry()
	return New(registry, time.Now(), Kernel{}), registry
}

// sums are the metrics that are sums over all Services, without those that are 0.
func sums(t *rapid.T, registry *prometheus.Registry) []string {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		switch strings.TrimPrefix(f.GetName(), namespace+"_") {
		case "closed_services", "closed_services_without_endpoints", "malformed_annotations", "endpoints_left_out", "sync_proxy_rules_no_local_endpoints_total":
		default:
			continue
		}
		for _, m := range f.GetMetric() {
			text := f.GetName()
			for _, l := range m.GetLabel() {
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			if value := m.GetGauge().GetValue(); value != 0 {
				all = append(all, fmt.Sprintf("%s %v", text, value))
			}
		}
	}
	return all
}
