package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestNotes: what an administrator reads after an installation fits the values.
func TestNotes(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	copied := filepath.Join(t.TempDir(), Name)
	if err := os.CopyFS(copied, os.DirFS(h.Chart)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(copied, "files", "crds")); err != nil { // a link that leads nowhere from here
		t.Fatal(err)
	}
	// Without a cluster helm shows no notes, so a manifest quotes them.
	const quote = `kind: Notes
text: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}
`
	if err := os.WriteFile(filepath.Join(copied, "templates", "notes.yaml"), []byte(quote), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Chart = copied
	const (
		remove   = "delete daemonset kube-proxy"
		keepOff  = "kube-proxy must be kept off these Nodes"
		prepared = "WARNING: daemon.privilegedInit is false"
		rollout  = "rollout status daemonset/gridproxy\n"
	)
	for _, c := range []struct {
		values     string
		says, omit []string
	}{
		{``, []string{remove, rollout, "rollout status deployment/grid-controller\n", "WARNING: apiServers is empty"}, []string{keepOff, prepared}},
		{`daemon.nodeSelector={"service-proxy":"gridproxy"}`, []string{keepOff}, []string{remove}},
		{`daemon.affinity={"nodeAffinity":{}}`, []string{keepOff}, []string{remove}},
		{`daemon.shadow=true daemon.nodeSelector={"edge":"yes"}`, []string{"it writes nothing"}, []string{remove, keepOff}},
		{`daemon.serviceProxyName="trial"`, []string{"kubectl label service NAME service.kubernetes.io/service-proxy-name=trial"}, []string{remove, keepOff}},
		{`daemon.privilegedInit=false`, []string{prepared}, nil},
		{`daemon.privilegedInit=false daemon.shadow=true`, nil, []string{prepared}},                    // a shadow leaves the Node's settings alone
		{`daemon.updateStrategy="OnDelete"`, []string{"get daemonset/gridproxy\n"}, []string{rollout}}, // kubectl has no status of it
		{`controller.enabled=false`, nil, []string{"deployment/grid-controller"}},
		{`apiServers=["10.0.0.1:6443"] clusterCIDR="10.244.0.0/16"`, nil, []string{"WARNING"}},
	} {
		text, err := h.Do(t.Context(), append([]string{"template", Name, h.Chart, "--namespace", Namespace, "--show-only", "templates/notes.yaml"},
			set(strings.Fields(c.values))...)...)
		if err != nil {
			t.Fatal(err)
		}
		var notes struct{ Text string }
		if err := yaml.Unmarshal([]byte(text), &notes); err != nil {
			t.Fatal(err)
		}
		warnFirst(t, c.values, notes.Text)
		for _, want := range c.says {
			if !strings.Contains(notes.Text, want) {
				t.Errorf("values %s: the notes do not say %q:\n%s", c.values, want, notes.Text)
			}
		}
		for _, not := range c.omit {
			if strings.Contains(notes.Text, not) {
				t.Errorf("values %s: the notes say %q:\n%s", c.values, not, notes.Text)
			}
		}
	}
}

// warnFirst checks that what may do harm comes after its warning, and all warnings about the values
// before the advice to remove kube-proxy.
func warnFirst(t *testing.T, values, notes string) {
	t.Helper()
	for advice, warning := range map[string]string{
		"delete daemonset kube-proxy":                   "CAUTION: once it is removed",
		"kubectl delete deploymentgrids":                "CAUTION: these commands delete all Grids",
		"kubectl label nodes --all KEY-":                "CAUTION: without the label",
		"pod-security.kubernetes.io/enforce=privileged": "CAUTION: then whoever may create Pods",
	} {
		if before, _, found := strings.Cut(notes, advice); found && !strings.Contains(before, warning) {
			t.Errorf("values %s: the notes advise %q without %q before it", values, advice, warning)
		}
	}
	_, after, _ := strings.Cut(notes, "delete daemonset kube-proxy")
	for _, value := range []string{"apiServers", "clusterCIDR", "daemon.privilegedInit"} {
		if strings.Contains(after, value+" is ") {
			t.Errorf("values %s: the notes warn of %s after the advice to remove kube-proxy", values, value)
		}
	}
}
