package chart

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestLabels: every object has the standard labels of Kubernetes and helm.
func TestLabels(t *testing.T) {
	t.Parallel()
	every := []string{"dns.enabled=true", "monitoring.serviceMonitor=true", "monitoring.prometheusRule=true", "monitoring.dashboard=true"}
	for _, c := range []struct{ tag, version string }{
		{"v1.2", "v1.2"},
		{"sha256:" + strings.Repeat("0a", 32), "dev"}, // a label cannot have a colon
		{strings.Repeat("a", 64), "dev"},
	} {
		all := objects(t, newHelm(t), append(every, fmt.Sprintf("image.tag=%q", c.tag))...)
		if len(all) < 20 {
			t.Errorf("there are %d objects", len(all))
		}
		for name, o := range all {
			program := "gridproxy"
			switch {
			case strings.Contains(name, "/grid-dns"):
				program = "grid-dns"
			case o.GetKind() == "CustomResourceDefinition" || strings.Contains(name, "/grid-"):
				program = "grid-controller"
			}
			want := map[string]string{
				"app.kubernetes.io/name": program, "app.kubernetes.io/part-of": "gridproxy", "app.kubernetes.io/instance": "gridproxy",
				"app.kubernetes.io/version": c.version, "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "gridproxy-0.1.0",
			}
			got := o.GetLabels()
			delete(got, "grafana_dashboard")
			if !maps.Equal(got, want) {
				t.Errorf("%s has the labels %v, want %v", name, got, want)
			}
		}
	}
}

// TestSelectors: what cannot be changed is as in every release before, or no upgrade works; and the
// Pods have it.
func TestSelectors(t *testing.T) {
	t.Parallel()
	all := objects(t, newHelm(t), "dns.enabled=true", "monitoring.serviceMonitor=true")
	for object, path := range map[string]string{
		"DaemonSet/gridproxy": "spec.selector.matchLabels", "Service/gridproxy-metrics": "spec.selector",
		"Deployment/grid-controller": "spec.selector.matchLabels", "Service/grid-controller-metrics": "spec.selector",
		"PodDisruptionBudget/grid-controller": "spec.selector.matchLabels",
		"DaemonSet/grid-dns":                  "spec.selector.matchLabels", "Service/grid-dns-metrics": "spec.selector",
	} {
		program := "gridproxy"
		for _, other := range []string{"grid-controller", "grid-dns"} {
			if strings.Contains(object, other) {
				program = other
			}
		}
		if got := fmt.Sprint(at(t, all[object], path)); got != "map[app.kubernetes.io/name:"+program+"]" {
			t.Errorf("%s selects %s", object, got)
		}
	}
	for _, workload := range []string{"DaemonSet/gridproxy", "DaemonSet/grid-dns", "Deployment/grid-controller"} {
		labels, _ := at(t, all[workload], "spec.template.metadata.labels").(map[string]any)
		for key, value := range at(t, all[workload], "spec.selector.matchLabels").(map[string]any) {
			if labels[key] != value {
				t.Errorf("the Pods of %s have %s=%v, want %v", workload, key, labels[key], value)
			}
		}
		if labels["helm.sh/chart"] != nil {
			t.Errorf("the Pods of %s are replaced by every new chart: they have helm.sh/chart", workload)
		}
	}
}
