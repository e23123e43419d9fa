package sites

import (
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site"
	"gridproxy/integration/env/wait"
)

// TestManual: the manual's cluster, with the samples that are shipped; then Nodes, groups and units go.
func TestManual(t *testing.T) {
	t.Parallel()
	r := newRunning(t, func(c *site.Config) { c.DefaultUnit = v1alpha2.DefaultUnit })
	for _, n := range []string{"bj-1", "bj-2", "bj-3", "gz-1", "gz-2", "gz-3"} {
		r.node(n)
	}
	const all = "unit-node-all=nodeunits.superedge.io"
	r.kubectl("", "apply", "-f", "../../deploy/samples/nodeunits")
	for _, n := range []string{"bj-1", "bj-2", "bj-3"} {
		r.labels(n, "beijing=nodeunits.superedge.io location=beijing "+all)
	}
	for _, n := range []string{"gz-1", "gz-2", "gz-3"} {
		r.labels(n, "guangzhou=nodeunits.superedge.io location=guangzhou "+all)
	}
	r.readyRate("beijing", "3/3")
	r.readyRate("guangzhou", "3/3")
	r.readyRate(v1alpha2.DefaultUnit, "6/6")
	wait.Until(r.t, "what kubectl prints", func() error {
		return unlike(columns(r.kubectl("", "get", "nu"), 3)+"; "+columns(r.kubectl("", "get", "ng"), 2),
			"NAME TYPE READY, beijing edge 3/3, guangzhou edge 3/3, unit-node-all other 6/6; NAME UNITS, location 2")
	})
	if got := columns(r.kubectl("", "get", "nodeunits.v1alpha1.site.superedge.io"), 3); !strings.Contains(got, "beijing edge 3/3") {
		t.Errorf("v1alpha1 prints %s", got)
	}
	r.sync("first")
	r.taken()

	// A Node joins a unit by a selector, at once: its label is what the unit selects.
	r.kubectl(nodeUnit("v1alpha2", "shanghai", `{"selector": {"matchLabels": {"site": "sh"}, "annotations": {"rack": "7"}}}`), "create", "-f", "-")
	r.node("sh-1", "site=sh")
	start := time.Now()
	r.patchNode("sh-1", "somebody", `{"metadata": {"annotations": {"rack": "7"}}}`)
	r.labels("sh-1", "shanghai=nodeunits.superedge.io site=sh "+all)
	t.Logf("a Node that matches is in its unit after %s", time.Since(start).Round(time.Millisecond))

	// A Node leaves.
	r.kubectl("", "patch", "nodeunit", "beijing", "--type=merge", "-p", `{"spec": {"nodes": ["bj-1", "bj-2"]}}`)
	r.labels("bj-3", all)
	r.readyRate("beijing", "2/2")
	r.patchNode("bj-1", "kubelet", `{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}`, "status")
	r.readyRate("beijing", "1/2")
	if err := r.api.CoreV1().Nodes().Delete(r.ctx, "bj-1", noOptions()); err != nil {
		t.Fatal(err)
	}
	r.readyRate("beijing", "1/1")

	// The group goes, then a unit.
	r.kubectl("", "delete", "nodegroup", "location")
	r.gone(&v1alpha2.NodeGroup{}, "location")
	r.labels("bj-2", "beijing=nodeunits.superedge.io "+all)
	r.labels("gz-1", "guangzhou=nodeunits.superedge.io "+all)
	if got := r.unit("beijing").Labels; len(got) != 0 {
		t.Errorf("labels of beijing: %v", got)
	}
	r.kubectl("", "delete", "nodeunit", "beijing", "shanghai")
	r.gone(&v1alpha2.NodeUnit{}, "beijing")
	r.gone(&v1alpha2.NodeUnit{}, "shanghai")
	r.labels("bj-2", all)
	r.labels("sh-1", "site=sh "+all)
	r.labels("gz-1", "guangzhou=nodeunits.superedge.io "+all)
	// A unit that somebody has deleted is not made anew.
	r.kubectl("", "delete", "nodeunit", v1alpha2.DefaultUnit)
	r.sync("last")
	r.gone(&v1alpha2.NodeUnit{}, v1alpha2.DefaultUnit)
	r.labels("gz-1", "guangzhou=nodeunits.superedge.io")
}

// columns are the first columns of what kubectl prints.
func columns(out string, n int) string {
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line)[:n], " "))
	}
	return strings.Join(rows, ", ")
}
