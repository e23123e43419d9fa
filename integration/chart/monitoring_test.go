package chart

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// registered are the metrics of both programs: tests of their packages keep the page equal to what they register. The
// rest comes with the Prometheus client.
func registered(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"process_resident_memory_bytes", "process_cpu_seconds_total"}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, cell := range strings.Split(line, "|")[1:3] {
			names = append(names, strings.Trim(cell, " `"))
		}
	}
	return names
}

var metric = regexp.MustCompile(`\b(?:gridproxy|grid_controller|process|go|kubeproxy)_[a-z0-9_]+`)

// names checks that an expression is about metrics that exist.
func names(t *testing.T, where, expr string) {
	t.Helper()
	found := metric.FindAllString(expr, -1)
	if len(found) == 0 && !strings.HasPrefix(expr, "up{") {
		t.Errorf("%s: %q names no metric of ours", where, expr)
	}
	for _, name := range found {
		name = strings.TrimSuffix(name, "_bucket")
		if !slices.Contains(registered(t), name) {
			t.Errorf("%s: docs/metrics.md has no %s", where, name)
		}
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	all := objects(t, newHelm(t), "monitoring.prometheusRule=true", "monitoring.serviceMonitor=true")
	text, err := yaml.Marshal(at(t, all["PrometheusRule/gridproxy"], "spec"))
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, g := range spec.Groups {
		for _, r := range g.Rules {
			count++
			names(t, r.Alert, r.Expr)
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s has no severity, summary or description", r.Alert)
			}
			if job := regexp.MustCompile(`job="([^"]+)"`).FindStringSubmatch(r.Expr); job != nil {
				if _, found := all["Service/"+job[1]]; !found {
					t.Errorf("%s: there is no Service %s, after which the operator calls a job", r.Alert, job[1])
				}
			}
		}
	}
	if count < 10 {
		t.Errorf("there are %d alerts", count)
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	text, _ := at(t, objects(t, newHelm(t), "monitoring.dashboard=true")["ConfigMap/gridproxy-dashboard"], "data").(map[string]any)["gridproxy.json"].(string)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			names(t, p.Title, target.Expr)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
	}
	for _, v := range board.Templating.List {
		if v.Name == "node" {
			names(t, "variable node", v.Query)
		}
	}
	if len(ids) < 10 {
		t.Errorf("there are %d panels", len(ids))
	}
}
