package hub

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shownMetrics are metrics of two clusters.
func shownMetrics() *Metrics {
	m := NewMetrics()
	bundle := func(namespace, size string) v1alpha1.GridBundle {
		return v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Labels: map[string]string{v1alpha1.LabelCluster: "any"}, Annotations: map[string]string{annotationSize: size},
		}}
	}
	l := lists{bundles: []v1alpha1.GridBundle{bundle("fleet-west", "300"), bundle("fleet-west", "500"), bundle("fleet-gone", "700")}}
	m.summary.Store(summarize(l, map[string]v1alpha1.FleetClusterStatus{
		"west": {State: "Behind", Grids: []v1alpha1.ClusterGrid{{State: "Current"}, {State: "Behind"}, {State: "AnyWordOfAMember"}, {State: "Another"}}},
		"east": {State: "Behind", Grids: []v1alpha1.ClusterGrid{{State: "Current"}}},
	}))
	m.wrote(kindBundle, nil)
	m.wrote(kindBundle, errInjected)
	return m
}

// TestDocs: docs/metrics.md has a row for each metric of this package, and no other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, ours []string
	for _, row := range regexp.MustCompile("(?m)^\\| `("+metricsPrefix+"_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(shownMetrics())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		ours = append(ours, f.GetName())
	}
	slices.Sort(documented)
	if diff := cmp.Diff(ours, documented); diff != "" {
		t.Errorf("docs/metrics.md (-registry +page)\n%s", diff)
	}
}

// TestMetrics: the metrics show the last state. A member chooses none of their labels.
func TestMetrics(t *testing.T) {
	want := `
# HELP grid_controller_fleet_bundle_bytes Bytes of the largest GridBundle of a cluster, packed.
# TYPE grid_controller_fleet_bundle_bytes gauge
grid_controller_fleet_bundle_bytes{cluster="east"} 0
grid_controller_fleet_bundle_bytes{cluster="west"} 500
# HELP grid_controller_fleet_clusters FleetClusters, by the state in their status.
# TYPE grid_controller_fleet_clusters gauge
grid_controller_fleet_clusters{state="Behind"} 2
# HELP grid_controller_fleet_grids Grids in clusters, by their state there: Current, Behind, Waiting, or Failed.
# TYPE grid_controller_fleet_grids gauge
grid_controller_fleet_grids{state="Behind"} 1
grid_controller_fleet_grids{state="Current"} 2
grid_controller_fleet_grids{state="Failed"} 2
# HELP grid_controller_fleet_writes_total Objects of the hub that the distribution of Grids had written.
# TYPE grid_controller_fleet_writes_total counter
grid_controller_fleet_writes_total{kind="GridBundle",result="failure"} 1
grid_controller_fleet_writes_total{kind="GridBundle",result="success"} 1
`
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(shownMetrics())
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
