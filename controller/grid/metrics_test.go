package grid

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

// TestDocs: docs/metrics.md has a row for each metric of Grids, and no other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `("+metricsPrefix+"_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		// Those of packages site and federation/hub are in other registries.
		if !strings.HasPrefix(row[1], metricsPrefix+"_site_") && !strings.HasPrefix(row[1], metricsPrefix+"_fleet_") {
			documented = append(documented, row[1])
		}
	}
	registry, m := prometheus.NewRegistry(), NewMetrics()
	registry.MustRegister(m)
	m.observe(expand.Grid{Spec: gridspec.Spec{Kind: expand.DeploymentGrid}}, v1.WorkloadGridStatus{})
	m.stepped(expand.DeploymentGrid, expand.Apply{}, nil)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, f := range families {
		ours = append(ours, f.GetName())
	}
	slices.Sort(documented)
	if diff := cmp.Diff(ours, documented); diff != "" {
		t.Errorf("docs/metrics.md (-registry +page)\n%s", diff)
	}
}

func TestMetricsOfAGrid(t *testing.T) {
	registry, m := prometheus.NewRegistry(), NewMetrics()
	registry.MustRegister(m)
	s := statusOf(is(v1.ConditionDeletionHeld, "True", "MostUnitsLost"), unitIs(v1.UnitLost, ""), unitIs(v1.UnitLost, ""),
		v1.UnitStatus{Phase: v1.UnitFailed, Misplaced: 3})
	s.LostUnits, s.FailedUnits, s.OfflineUnits = 2, 1, 4 // also of units without a row
	m.observe(expand.Grid{Spec: gridspec.Spec{Kind: expand.DeploymentGrid}, Namespace: "a", Name: "web"}, s)
	var want strings.Builder
	for _, g := range []struct{ name, help, value string }{
		{"deletions_held", "1 if children of lost units are not deleted after their grace: most units are lost, or the removal budget is spent.", "1"},
		{"misplaced_pods", "Pods of a Grid on Nodes outside their units.", "3"},
		{"units_failed", "Units of a Grid that do not have what it asks for.", "1"},
		{"units_offline", "Units of a Grid that have Nodes of which none is ready.", "4"},
		{"units_lost", "Units of a Grid that have a child and no Node.", "2"},
	} {
		want.WriteString("# HELP grid_controller_" + g.name + " " + g.help + "\n# TYPE grid_controller_" + g.name + " gauge\n" +
			`grid_controller_` + g.name + `{kind="DeploymentGrid",name="web",namespace="a"} ` + g.value + "\n")
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String())); err != nil {
		t.Error(err)
	}
	m.forget(expand.DeploymentGrid, types.NamespacedName{Namespace: "a", Name: "web"})
	if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
		t.Errorf("%d metrics of a Grid that has gone: %v", n, err)
	}
}
