package site

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/site/assign"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestDocs: docs/metrics.md has a row for each metric of this package, and no other.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `("+metricsPrefix+"_[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1])
	}
	m := NewMetrics()
	m.summary.Store(&assign.Summary{Units: []assign.UnitNodes{{}}, Wrong: []assign.Wrong{{}}, Kept: []assign.KeptLabels{{}}})
	m.wrote(kindNode, nil)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
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

// TestMetrics: the metrics show the last state, and nothing of what is gone.
func TestMetrics(t *testing.T) {
	registry, m := prometheus.NewPedanticRegistry(), NewMetrics()
	registry.MustRegister(m)
	if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
		t.Errorf("%d metrics before anything was decided: %v", n, err)
	}
	m.summary.Store(&assign.Summary{Units: []assign.UnitNodes{{Unit: "gone", Ready: 9}}})
	m.summary.Store(&assign.Summary{
		Units: []assign.UnitNodes{{Unit: "beijing", Ready: 2, NotReady: 1}},
		Wrong: []assign.Wrong{{Kind: kindGroup, Name: "location", Condition: "Missing"}},
		Kept:  []assign.KeptLabels{{Key: "location", Nodes: 3}},
	})
	m.wrote(kindNode, nil)
	m.wrote(kindNode, errors.New("no"))
	want := `
# HELP grid_controller_site_conditions 1 for each condition of a NodeUnit or NodeGroup, which is there while something is wrong.
# TYPE grid_controller_site_conditions gauge
grid_controller_site_conditions{condition="Missing",kind="NodeGroup",name="location"} 1
# HELP grid_controller_site_kept_labels Nodes that keep a label with this key although the NodeUnit or NodeGroup that put it there is gone, because a Grid or a Service names the key.
# TYPE grid_controller_site_kept_labels gauge
grid_controller_site_kept_labels{key="location"} 3
# HELP grid_controller_site_unit_nodes Nodes of a NodeUnit, by whether they are ready.
# TYPE grid_controller_site_unit_nodes gauge
grid_controller_site_unit_nodes{ready="false",unit="beijing"} 1
grid_controller_site_unit_nodes{ready="true",unit="beijing"} 2
# HELP grid_controller_site_writes_total Objects that NodeUnits and NodeGroups had written.
# TYPE grid_controller_site_writes_total counter
grid_controller_site_writes_total{kind="Node",result="failure"} 1
grid_controller_site_writes_total{kind="Node",result="success"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
