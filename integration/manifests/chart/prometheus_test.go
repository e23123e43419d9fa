package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	"sigs.k8s.io/yaml"
)

// monitored is a cluster with real daemons and a real grid-controller, and a real Prometheus that
// scrapes them as the chart's ServiceMonitors say.
type monitored struct {
	t          *testing.T
	lab        *netns.Lab
	prometheus netip.AddrPort
}

// faults are a Service that a unit refuses, and one with malformed annotations. The label of a
// NodeUnit that is deleted stays while the last Service names its key.
const faults = `
{apiVersion: v1, kind: Service, metadata: {name: refused, annotations: {topologyKeys: '["location"]'}}, spec: {selector: {app: none}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: malformed, annotations: {topologyKeys: '["location"'}}, spec: {selector: {app: none}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: keeps, annotations: {topologyKeys: '["spare"]'}}, spec: {selector: {app: none}, ports: [{port: 80}]}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeUnit, metadata: {name: spare}, spec: {nodes: [gz-2]}}
---
{apiVersion: site.superedge.io/v1alpha2, kind: NodeGroup, metadata: {name: spare}, spec: {nodeUnits: [spare]}}
`

// TestQueries: a real Prometheus has data for every query of the dashboard, and for every metric in
// an alert, from real daemons and a real grid-controller.
func TestQueries(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	need.Prometheus(t)
	m := newMonitored(t)
	for _, row := range rows(board(t)) {
		for _, p := range row.Panels {
			for _, q := range queries(t, p) {
				m.hasData(*p.Title, strings.NewReplacer("$node", ".*", "$__range", "5m").Replace(q.Expr))
			}
		}
	}
	m.rulesWork()
	for _, r := range alertRules(t, objects(t, newHelm(t), "monitoring.prometheusRule=true")) {
		for _, selected := range selector.FindAllString(r.Expr, -1) {
			if !strings.Contains(r.Expr, selected+"(") { // a function
				m.hasData(r.Alert, selected)
			}
		}
	}
}

// selector finds the selectors of series in an expression: a metric, the labels that are asked for
// and a range.
var selector = regexp.MustCompile(`\b(?:up|[a-z]+_[a-z_]+)(?:{[^}]*}(?:\[\w+\])?|\[\w+\]|\b)`)

// withoutData are metrics that this cluster does not have, and why.
func withoutData() map[string]string {
	return map[string]string{
		"gridproxy_ipvs_":            "mode ipvs is not on: it takes a kernel that has it",
		"kube_node_status_condition": "it is of kube-state-metrics, without which the alert works too",
		// The series begins with the first failure.
		`grid_controller_steps_total{result="failure"}`: "the API server answers; what it refuses is no failure",
	}
}

func absent(query string) bool {
	for part := range withoutData() {
		if strings.Contains(query, part) {
			return true
		}
	}
	return false
}

func newMonitored(t *testing.T) *monitored {
	t.Helper()
	lab := netns.ForTest(t, netns.Manual().Only("bj-1", "gz-2"))
	c := nodes.ForTest(t, nodes.Options{Namespace: lab.Outside, Addrs: lab.Outside.Addrs, Manifests: []string{folder + "/crds"}})
	c.AddNodes(t, nodes.Node{Name: "bj-1"}, nodes.Node{Name: "gz-2"})
	g := c.GridController(t, nodes.ControllerOptions{})
	g.WaitReady(t)
	m := &monitored{t: t, lab: lab}
	targets := map[string][]scraped{"grid-controller": {{at: g.Metrics.String()}}}
	binary := program.ForTest(t, program.Gridproxy)
	for _, n := range lab.Nodes() {
		m.startDaemon(n, binary, c.Kubeconfig())
		targets["gridproxy"] = append(targets["gridproxy"], scraped{at: netip.AddrPortFrom(n.Addr(netns.IPv4), 10249).String(), node: n.Name})
	}
	m.startPrometheus(targets)
	// What happens only once happens after Prometheus has started, or increase does not see it.
	m.hasData("the daemons", "gridproxy_closed_services")
	c.ApplyFile(t, folder+"/samples/nodeunits/nodeunits.yaml", folder+"/samples/stateless")
	c.Apply(t, faults)
	m.hasData("the spare unit", `grid_controller_site_unit_nodes{unit="spare", ready="true"} > 0`)
	c.MustKubectl(t, "delete", "nodegroup/spare", "nodeunit/spare", "--wait=false")
	return m
}

func (m *monitored) startDaemon(n *netns.Node, binary, kubeconfig string) {
	m.t.Helper()
	daemon, err := n.Start(binary, "run", "--node-name", n.Name, "--kubeconfig", kubeconfig, "--conntrack-max-per-core", "0",
		"--iptables-variant", "nft", netns.NoStatusSocket, "--state-dir", m.t.TempDir(), "--metrics-bind-address", "0.0.0.0:10249")
	must(m.t, err)
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the daemon on %s said:\n%s", n.Name, daemon.Log())
		}
	})
}

// scraped is where a program serves its metrics, and its Node; "": it has none of interest.
type scraped struct{ at, node string }

// startPrometheus starts it beside the API server, with the chart's rules. It scrapes each second.
func (m *monitored) startPrometheus(targets map[string][]scraped) {
	m.t.Helper()
	all := objects(m.t, newHelm(m.t), "monitoring.prometheusRule=true", "monitoring.serviceMonitor=true")
	dir := m.t.TempDir()
	var jobs []map[string]any
	for program, of := range targets {
		job := map[string]any{
			// As the operator calls it.
			"job_name":     at(m.t, all["Service/"+program+"-metrics"], "metadata.name"),
			"honor_labels": at(m.t, all["ServiceMonitor/"+program], "spec.endpoints.0.honorLabels") == true,
		}
		var static []map[string]any
		for _, s := range of {
			static = append(static, map[string]any{"targets": []string{s.at}, "labels": map[string]string{"node": s.node, "namespace": Namespace}})
		}
		job["static_configs"] = static
		jobs = append(jobs, job)
	}
	m.write(filepath.Join(dir, "prometheus.yaml"), map[string]any{
		"global":         map[string]string{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": jobs,
	})
	m.write(filepath.Join(dir, "rules.yaml"), at(m.t, all["PrometheusRule/gridproxy"], "spec"))
	ports, err := apiserver.FreePorts(m.lab.Outside, 1)
	must(m.t, err)
	m.prometheus = ports[0]
	p, err := m.lab.Outside.Start("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+m.prometheus.String())
	must(m.t, err)
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("Prometheus said:\n%s", p.Log())
		}
		p.Kill() // before its folder is removed
	})
}

func (m *monitored) write(file string, content any) {
	m.t.Helper()
	text, err := yaml.Marshal(content)
	must(m.t, err)
	write(m.t, file, string(text))
}

// ask asks Prometheus's API for a path, and reads the data of its answer.
func (m *monitored) ask(ctx context.Context, path string, data any) error {
	page, err := m.lab.Outside.Get(ctx, m.prometheus, path)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(page.Text, &answer); err != nil {
		return fmt.Errorf("Prometheus says %d: %s: %w", page.Code, bytes.TrimSpace(page.Text), err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("Prometheus says %d: %s", page.Code, answer.Error)
	}
	return json.Unmarshal(answer.Data, data)
}

// hasData waits until a query returns a number, unless it is about metrics that are not there.
func (m *monitored) hasData(where, query string) {
	m.t.Helper()
	err := wait.Usual.For(m.t.Context(), func(ctx context.Context) error {
		var data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any // time, value
			}
		}
		if err := m.ask(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data); err != nil {
			return err
		}
		if absent(query) {
			return nil // that it can be parsed is enough
		}
		for _, r := range data.Result {
			if r.Value[1] != "NaN" {
				return nil
			}
		}
		return fmt.Errorf("the result is %v", data.Result)
	})
	if err != nil {
		m.t.Errorf("%s: %q has no data: %v", where, query, err)
	}
}

// rulesWork waits until every alert has been evaluated without an error, and exactly those that
// this cluster gives cause for are pending or firing.
func (m *monitored) rulesWork() {
	m.t.Helper()
	cause := map[string]bool{
		"GridproxyServiceWithoutEndpoints": true, "GridproxyMalformedAnnotations": true,
		"GridSiteCondition": true, "GridLabelsKept": true,
	}
	err := wait.Usual.For(m.t.Context(), func(ctx context.Context) error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, State, Health, LastError string }
			}
		}
		if err := m.ask(ctx, "/api/v1/rules", &data); err != nil {
			return err
		}
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Health != "ok" {
					return fmt.Errorf("the rule %s is %s: %s", r.Name, r.Health, r.LastError)
				}
				if cause[r.Name] != (r.State != "inactive") {
					return fmt.Errorf("the alert %s is %s", r.Name, r.State)
				}
			}
		}
		return nil
	})
	if err != nil {
		m.t.Error(err)
	}
}
