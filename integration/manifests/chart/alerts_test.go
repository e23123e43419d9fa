package chart

import (
	"os/exec"
	"path/filepath"
	"testing"

	"gridproxy/integration/env/need"

	"sigs.k8s.io/yaml"
)

const alertTests = "testdata/alerts.yaml"

// TestAlertsFire: promtool has each alert fire when it should, and not otherwise. Of the
// annotations it compares the summaries; TestAlerts and TestRunbooks are about the others.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	need.Prometheus(t)
	spec := at(t, objects(t, newHelm(t), "monitoring.prometheusRule=true")["PrometheusRule/gridproxy"], "spec")
	groups, _ := spec.(map[string]any)["groups"].([]any)
	for _, g := range groups {
		rules, _ := g.(map[string]any)["rules"].([]any)
		for _, r := range rules {
			annotations, _ := r.(map[string]any)["annotations"].(map[string]any)
			delete(annotations, "description")
			delete(annotations, "runbook_url")
		}
	}
	rules, err := yaml.Marshal(spec)
	must(t, err)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), string(rules))
	write(t, filepath.Join(dir, "alerts.yaml"), read(t, alertTests))
	cmd := exec.CommandContext(t.Context(), "promtool", "test", "rules", "alerts.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAlertsAreTested: for each alert there is a time when it fires, and one when it does not.
func TestAlertsAreTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				AlertName string `json:"alertname"`
				ExpAlerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, alertTests)), &file))
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, one := range file.Tests {
		for _, a := range one.AlertRuleTest {
			fires[a.AlertName] = fires[a.AlertName] || len(a.ExpAlerts) > 0
			silent[a.AlertName] = silent[a.AlertName] || len(a.ExpAlerts) == 0
		}
	}
	alerts := map[string]bool{}
	for _, r := range alertRules(t, objects(t, newHelm(t), "monitoring.prometheusRule=true")) {
		alerts[r.Alert] = true
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: no test in %s where it fires, or none where it does not", r.Alert, alertTests)
		}
	}
	for name := range fires {
		if !alerts[name] {
			t.Errorf("%s has a test of %s, which is no alert: promtool finds it silent", alertTests, name)
		}
	}
}
