package cluster

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/wait"
)

// TestInstall goes through the life of a cluster, each step on what the one before it left.
func TestInstall(t *testing.T) {
	w := newInstallCluster(t)
	for _, step := range []struct {
		name string
		do   func(*installCluster)
	}{
		{"SuperEdge makes the children", (*installCluster).made},
		{"over SuperEdge's definitions", (*installCluster).over},
		{"installed over what was there", (*installCluster).installed},
		{"upgrade", (*installCluster).upgraded},
		{"uninstall", (*installCluster).removed},
		{"install again", (*installCluster).again},
		{"an empty cluster", (*installCluster).empty},
		{"plain manifests", (*installCluster).plain},
	} {
		begin := time.Now()
		if !t.Run(step.name, func(t *testing.T) {
			w.t = t
			step.do(w)
		}) {
			t.Fatalf("the steps after %q rest on it", step.name)
		}
		t.Logf("%s: %s", step.name, time.Since(begin).Round(100*time.Millisecond))
	}
}

// site is a NodeUnit of SuperEdge's, stored as v1alpha2.
const site = `
apiVersion: site.superedge.io/v1alpha2
kind: NodeUnit
metadata: {name: beijing, finalizers: [site.superedge.io/nodeunit]}
spec: {nodes: [bj-1], setNode: {labels: {tier: edge}}}
`

// made: SuperEdge's own controller makes the children, and ends.
func (w *installCluster) made() {
	spec := w.superEdge.Controller(w.Kubeconfig(), w.Dir())
	spec.Namespace = w.Namespace()
	running, err := apiserver.StartChild(spec)
	must(w.t, err)
	defer running.Stop(os.Kill, time.Minute)
	w.types("kubectl apply -f deploy/samples/stateless")
	w.Apply(w.t, site)
	w.pods()
}

// over: helm says what has to be done first, and does nothing; then it says whose the definitions are.
func (w *installCluster) over() {
	w.survives("moving the definitions over", func() {
		w.refused("run `grid-controller migrate-crds` first", "helm install gridproxy deploy/charts/gridproxy --create-namespace %s", w.values())
		w.types("grid-controller migrate-crds --kubeconfig ~/.kube/config")
	})
	w.refused("invalid ownership metadata", "helm install gridproxy deploy/charts/gridproxy --create-namespace %s", w.values())
	if left := w.types("helm list --namespace gridproxy --all --short"); left != "" {
		w.t.Errorf("a refused installation has left %s", left)
	}
}

// installed: the definitions are taken over, the daemons and the controllers are ready, and nothing else has changed.
func (w *installCluster) installed() {
	w.survives("helm install", func() {
		notes := w.types("helm install gridproxy deploy/charts/gridproxy --create-namespace --take-ownership %s %s", w.values(), waitFlags)
		if !strings.Contains(notes, "kube-proxy must not run on the same Nodes") || strings.Contains(notes, "WARNING") {
			w.t.Errorf("the notes are\n%s", notes)
		}
		w.answers()
	})
	w.reconciles(3)
	on := w.MustKubectl(w.t, "get", "pods", "--namespace=gridproxy", "--selector=app.kubernetes.io/name=grid-controller", "-o", "jsonpath={.items[*].spec.nodeName}")
	if on != "bj-1 gz-1" && on != "gz-1 bj-1" {
		w.t.Errorf("the controllers are on %s, want one on each machine", on)
	}
	wait.Until(w.t, "NodeUnit beijing labels bj-1", func() error {
		got, err := w.Kubectl("get", "node", "bj-1", "-o", "jsonpath={.metadata.labels.tier}")
		return errors.Join(err, wait.Check(got == "edge", "it gives bj-1 the label tier=%q", got))
	})
}

// reconciles: the controller follows a change of a Grid.
func (w *installCluster) reconciles(replicas int) {
	w.t.Helper()
	w.types(`kubectl patch deploymentgrid deploymentgrid-demo --type=merge -p '{"spec": {"template": {"replicas": %d}}}'`, replicas)
	wait.Until(w.t, "the children follow", func() error {
		for _, unit := range where() {
			if got, err := w.Kubectl("get", "deployment", deployment+unit, "-o", "jsonpath={.status.readyReplicas}"); err != nil || got != fmt.Sprint(replicas) {
				return fmt.Errorf("%s has %s Pods, want %d: %w", unit, got, replicas, err)
			}
		}
		return nil
	})
}

// upgraded: a changed definition arrives, a changed value replaces the daemons, and nothing else changes.
func (w *installCluster) upgraded() {
	w.copyOf("charts/gridproxy", "newer", "files/crds/superedge.io_deploymentgrids.yaml", map[string]string{"    - dg\n": "    - dg\n    - dgrid\n"})
	daemons := `kubectl --namespace gridproxy get pods --selector app.kubernetes.io/name=gridproxy -o jsonpath='{range .items[*]}{.metadata.uid} {.spec.containers[0].args}{"\n"}{end}'`
	before := w.types("%s", daemons)
	w.survives("helm upgrade", func() {
		w.types("helm upgrade gridproxy newer --namespace gridproxy --reset-then-reuse-values --set 'daemon.extraArgs={--v=1}' %s", waitFlags)
		w.answers()
	})
	after := w.types("%s", daemons)
	for line := range strings.Lines(after) {
		uid, args, _ := strings.Cut(line, " ")
		if !strings.Contains(args, "--v=1") || strings.Contains(before, uid) {
			w.t.Errorf("a daemon was not replaced: %s", line)
		}
	}
	if got := w.MustKubectl(w.t, "get", "crd", "deploymentgrids.superedge.io", "-o", "jsonpath={.spec.names.shortNames}"); got != `["dg","dgrid"]` {
		w.t.Errorf("the definition's short names are %s", got)
	}
}

// removed: the definitions and all that users have made stay, and the rules go on working.
func (w *installCluster) removed() {
	w.survives("helm uninstall", func() {
		w.types("helm uninstall gridproxy --namespace gridproxy %s", waitFlags)
		w.gone()
		w.answers()
	})
}

// again: with the same name, helm takes over everything unchanged; with another, it asks for an
// order to take over.
func (w *installCluster) again() {
	w.refused(`must equal "other": current value is "gridproxy"`, "helm install other deploy/charts/gridproxy --dry-run=server %s", w.values())
	notes := w.types("helm install gridproxy deploy/charts/gridproxy --dry-run=server --namespace gridproxy --set daemon.shadow=true")
	for _, want := range []string{"WARNING: apiServers is empty", "clusterCIDR is empty", "exec daemonset/gridproxy -- gridproxy diff"} {
		if !strings.Contains(notes, want) {
			w.t.Errorf("the notes of a shadow without an API server do not say %q:\n%s", want, notes)
		}
	}
	w.survives("helm install again", func() {
		w.types("helm install gridproxy deploy/charts/gridproxy %s %s", w.values(), waitFlags)
		w.answers()
	})
	w.reconciles(2)
}

// empty: without definitions, Grids, the namespace and the rules of before.
func (w *installCluster) empty() {
	w.types("kubectl delete deploymentgrids,servicegrids,nodeunits --all --cascade=foreground --timeout=60s")
	w.types("helm uninstall gridproxy --namespace gridproxy %s", waitFlags)
	w.types("kubectl delete -k deploy/crds --timeout=60s")
	w.types("kubectl delete namespace gridproxy --timeout=60s")
	w.types("helm install gridproxy deploy/charts/gridproxy --create-namespace %s %s", w.values(), waitFlags)
	w.types("kubectl apply -f deploy/samples/stateless")
	w.pods()
	w.answers()
	w.survives("helm uninstall", func() {
		w.types("helm uninstall gridproxy --namespace gridproxy %s", waitFlags)
		w.gone()
	})
}

// plain: kubectl apply -k does the same, on what helm has left; kubectl delete -k leaves Grids alone.
func (w *installCluster) plain() {
	var servers []string
	for _, s := range w.APIServers() {
		servers = append(servers, s.String())
	}
	w.shell.Run(w.t, "mkdir plain")
	w.copyOf("*.yaml", "plain", "gridproxy.yaml", map[string]string{
		"--api-servers=192.0.2.1:6443": "--api-servers=" + strings.Join(servers, ","),
		"--cluster-cidr=10.244.0.0/16": "--cluster-cidr=" + machines.ClusterCIDRs,
	})
	w.survives("kubectl apply -k and delete -k", func() {
		w.types("kubectl apply --server-side -k deploy/crds")
		w.types("kubectl apply -k plain")
		w.types("kubectl --namespace gridproxy rollout status daemonset/gridproxy --timeout=120s")
		w.types("kubectl --namespace gridproxy rollout status deployment/grid-controller --timeout=120s")
		w.answers()
		w.types("kubectl delete -k plain --timeout=60s")
		w.gone()
		w.answers()
	})
}
