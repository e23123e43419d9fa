package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/nodes"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestNotes: what an administrator reads after an installation fits the values.
func TestNotes(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	copied := filepath.Join(t.TempDir(), Name)
	must(t, os.CopyFS(copied, os.DirFS(h.Chart)))
	must(t, os.Remove(filepath.Join(copied, "files", "crds"))) // a link that leads nowhere from here
	// Without a cluster helm shows no notes, so a manifest quotes them.
	const quote = `kind: Notes
text: {{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}
`
	write(t, filepath.Join(copied, "templates", "notes.yaml"), quote)
	h.Chart = copied
	const (
		remove   = "delete daemonset kube-proxy"
		keepOff  = "kube-proxy must be kept off these Nodes"
		prepared = "WARNING: daemon.privilegedInit is false"
		rollout  = "rollout status daemonset/gridproxy\n"
		refuse   = "WARNING: dns.whenAway is refuse"
		policies = "WARNING: these NetworkPolicies"
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
		{``, nil, []string{"grid-dns", "networkpolicies"}},
		{`dns={"enabled":true,"addresses":["10.9.9.9"]}`, []string{"they must allow port 53 of 10.9.9.9/32,", "rollout status daemonset/grid-dns\n"}, []string{refuse, policies}},
		{`dns={"enabled":true,"whenAway":"refuse"}`, []string{"169.254.20.12/32 and fd00:6772:6964::12/128", refuse}, []string{policies}},
		{`apiServers=["10.0.0.1:6443"] clusterCIDR="10.244.0.0/16"`, nil, []string{"WARNING"}},
	} {
		text, err := h.Do(t.Context(), append([]string{"template", Name, h.Chart, "--namespace", Namespace, "--show-only", "templates/notes.yaml"},
			set(strings.Fields(c.values))...)...)
		must(t, err)
		var notes struct{ Text string }
		must(t, yaml.Unmarshal([]byte(text), &notes))
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

// TestNotesOfPolicies: with a cluster, the notes name the NetworkPolicies that drop queries to
// grid-dns, and no others.
func TestNotesOfPolicies(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	c := nodes.ForTest(t, nodes.Options{})
	const policy = `
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s, namespace: default}
spec: {podSelector: {}, %s}`
	udp, pods := `ports: [{port: 53, protocol: UDP}]`, `{podSelector: {matchLabels: {k8s-app: kube-dns}}}`
	var manifest strings.Builder
	var drops []string
	for _, p := range []struct {
		name, spec string
		drops      bool
	}{
		{"ingress-alone", `policyTypes: [Ingress]`, false},
		{"nothing", `policyTypes: [Egress]`, true},
		{"everything", `policyTypes: [Egress], egress: [{}]`, false},
		{"kube-dns", `policyTypes: [Egress], egress: [{to: [` + pods + `], ` + udp + `}]`, true},
		{"one-family", `policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 169.254.20.12/32}}], ` + udp + `}]`, true},
		{"both-families", `policyTypes: [Egress], egress: [{to: [` + pods + `, {ipBlock: {cidr: 169.254.20.12/32}}, {ipBlock: {cidr: "fd00:6772:6964::12/128"}}], ` + udp + `}]`, false},
		{"any-address", `policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}, {ipBlock: {cidr: "::/0"}}]}]`, false},
		{"except", `policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [169.254.0.0/16]}}, {ipBlock: {cidr: "::/0"}}]}]`, true},
		{"tcp-alone", `policyTypes: [Egress], egress: [{ports: [{port: 53, protocol: TCP}]}]`, true},
		{"range", `policyTypes: [Egress], egress: [{ports: [{port: 1, endPort: 1024, protocol: UDP}]}]`, false},
		{"other-range", `policyTypes: [Egress], egress: [{ports: [{port: 54, endPort: 1024, protocol: UDP}]}]`, true},
		{"other-port", `policyTypes: [Egress], egress: [{ports: [{port: 443, protocol: UDP}]}]`, true},
		{"named-port", `policyTypes: [Egress], egress: [{ports: [{port: dns, protocol: UDP}]}]`, true},
		{"any-port", `policyTypes: [Egress], egress: [{ports: [{protocol: UDP}]}]`, false},
	} {
		fmt.Fprintf(&manifest, policy, p.name, p.spec)
		if p.drops {
			drops = append(drops, "default/"+p.name)
		}
	}
	c.Apply(t, manifest.String())
	text, err := h.Do(t.Context(), "install", Name, h.Chart, "--namespace", Namespace, "--kubeconfig", c.Kubeconfig(), "--dry-run=server",
		"--set", "dns.enabled=true", "--set", "crds.install=false", "--hide-notes=false")
	must(t, err)
	_, notes, found := strings.Cut(text, "WARNING: these NetworkPolicies")
	if !found {
		t.Fatalf("the notes do not warn of policies:\n%s", text)
	}
	_, notes, _ = strings.Cut(notes, "\n\n")
	list, _, _ := strings.Cut(notes, "\n\n")
	slices.Sort(drops)
	if diff := cmp.Diff(drops, strings.Fields(list)); diff != "" {
		t.Errorf("policies that the notes name (-want +got):\n%s\n%s", diff, text)
	}
}
