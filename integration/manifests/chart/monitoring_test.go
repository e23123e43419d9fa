package chart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/controller/grid"
	"gridproxy/controller/site"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// registered are the metrics of both programs: tests of their packages keep the page equal to what they register. The
// rest comes with the Prometheus client.
func registered(t *testing.T) []string {
	t.Helper()
	names := []string{"process_resident_memory_bytes", "process_cpu_seconds_total"}
	for line := range strings.Lines(read(t, "../../../docs/metrics.md")) {
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
	if len(found) == 0 && !strings.Contains(expr, "up{job=") {
		t.Errorf("%s: %q names no metric of ours", where, expr)
	}
	for _, name := range found {
		name = strings.TrimSuffix(name, "_bucket")
		if !slices.Contains(registered(t), name) {
			t.Errorf("%s: docs/metrics.md has no %s", where, name)
		}
	}
}

const monitoringPage = "../../../docs/monitoring.md"

// TestRunbooks: each alert leads to its section of the page, and the page has no other section.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	var sections []string
	for _, found := range regexp.MustCompile(`(?m)^### (Grid\w+)$`).FindAllStringSubmatch(read(t, monitoringPage), -1) {
		sections = append(sections, found[1])
	}
	alerts := map[string]string{}
	for _, of := range []string{"https://example.com/page", "preset", ""} {
		set := []string{"monitoring.prometheusRule=true"}
		if of != "preset" {
			set = append(set, fmt.Sprintf("monitoring.runbookURL=%q", of))
		} else {
			of = "https://github.com/gridproxy/gridproxy/blob/main/docs/monitoring.md"
		}
		for _, r := range alertRules(t, objects(t, newHelm(t), set...)) {
			alerts[r.Alert] = r.Expr
			want := ""
			if of != "" {
				want = of + "#" + strings.ToLower(r.Alert)
			}
			if got := r.Annotations["runbook_url"]; got != want {
				t.Errorf("%s: runbook_url is %q, want %q", r.Alert, got, want)
			}
		}
	}
	for alert := range alerts {
		if !slices.Contains(sections, alert) {
			t.Errorf("%s has no section `### %s`", monitoringPage, alert)
		}
	}
	for _, s := range sections {
		if _, found := alerts[s]; !found {
			t.Errorf("%s has a section %s, which is no alert", monitoringPage, s)
		}
	}
}

type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alertRules(t *testing.T, all map[string]unstructured.Unstructured) []alertRule {
	t.Helper()
	text, err := yaml.Marshal(at(t, all["PrometheusRule/gridproxy"], "spec"))
	must(t, err)
	var spec struct {
		Groups []struct {
			Name  string
			Rules []alertRule
		}
	}
	must(t, yaml.UnmarshalStrict(text, &spec))
	var every []alertRule
	for _, g := range spec.Groups {
		every = append(every, g.Rules...)
	}
	return every
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	all := objects(t, newHelm(t), "monitoring.prometheusRule=true", "monitoring.serviceMonitor=true")
	every := alertRules(t, all)
	for _, r := range every {
		names(t, r.Alert, r.Expr)
		shown(t, r.Alert, r.Expr, r.Annotations["summary"]+r.Annotations["description"], inAlert)
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no severity, summary or description", r.Alert)
		}
		if job := regexp.MustCompile(`job="([^"]+)"`).FindStringSubmatch(r.Expr); job != nil {
			if _, found := all["Service/"+job[1]]; !found {
				t.Errorf("%s: there is no Service %s, after which the operator calls a job", r.Alert, job[1])
			}
		}
	}
	if len(every) < 10 {
		t.Errorf("there are %d alerts", len(every))
	}
}

// labelled are the labels of each metric of ours, by the program that serves it.
func labelled() map[string]map[string][]string {
	daemon := &collectors{}
	metrics.New(daemon, time.Time{}, metrics.Kernel{
		Packets: func() (uint64, uint64) { return 0, 0 },
		Servers: func() metrics.Servers { return metrics.Servers{} },
		Shadow:  func() metrics.Shadow { return metrics.Shadow{} },
	})
	return map[string]map[string][]string{
		"gridproxy":       daemon.labels(),
		"grid-controller": collectors{grid.NewMetrics(), site.NewMetrics()}.labels(),
	}
}

// collectors is a registry that only remembers.
type collectors []prometheus.Collector

func (c *collectors) Register(one prometheus.Collector) error      { *c = append(*c, one); return nil }
func (c *collectors) MustRegister(several ...prometheus.Collector) { *c = append(*c, several...) }
func (c *collectors) Unregister(prometheus.Collector) bool         { return false }

var description = regexp.MustCompile(`fqName: "([^"]+)".* variableLabels: {(.*)}}`)

func (c collectors) labels() map[string][]string {
	all := map[string][]string{}
	for _, one := range c {
		descriptions := make(chan *prometheus.Desc)
		go func() { one.Describe(descriptions); close(descriptions) }()
		for d := range descriptions {
			parts := description.FindStringSubmatch(d.String())
			all[parts[1]] = strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' })
		}
	}
	return all
}

// target are the labels that every series has from the Prometheus operator, and from the chart's relabelings.
func target() []string {
	return []string{"namespace", "service", "pod", "container", "endpoint", "job", "instance", "node"}
}

var (
	inAlert  = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	inLegend = regexp.MustCompile(`{{ *([a-z_]+) *}}`)
)

// shown checks that labels in a text are those of the metrics in an expression.
func shown(t *testing.T, where, expr, text string, label *regexp.Regexp) {
	t.Helper()
	have := target()
	for _, byName := range labelled() {
		for _, name := range metric.FindAllString(expr, -1) {
			have = append(have, byName[strings.TrimSuffix(name, "_bucket")]...)
		}
	}
	for _, l := range label.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(have, l[1]) {
			t.Errorf("%s: %q shows the label %s, which nothing in %q has", where, text, l[1], expr)
		}
	}
}

// TestTargetLabels: where a metric has a label that its target has too, the metric's is kept.
func TestTargetLabels(t *testing.T) {
	t.Parallel()
	services := objects(t, newHelm(t), "monitoring.serviceMonitor=true")
	pods := objects(t, newHelm(t), "monitoring.podMonitor.enabled=true")
	clashes := 0
	for program, byName := range labelled() {
		keeps := at(t, services["ServiceMonitor/"+program], "spec.endpoints.0.honorLabels") == true
		if too := at(t, pods["PodMonitor/"+program], "spec.podMetricsEndpoints.0.honorLabels") == true; too != keeps {
			t.Errorf("honorLabels of %s: the ServiceMonitor has %t, the PodMonitor %t", program, keeps, too)
		}
		for name, labels := range byName {
			for _, l := range labels {
				if slices.Contains(target(), l) {
					clashes++
					if !keeps {
						t.Errorf("%s of %s has the label %s, which Prometheus calls exported_%s without honorLabels", name, program, l, l)
					}
				}
			}
		}
	}
	if clashes < 4 {
		t.Errorf("there are %d labels that targets have too, want those of Grids", clashes)
	}
}
