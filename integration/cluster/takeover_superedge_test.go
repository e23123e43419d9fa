package cluster

import (
	"strings"

	"gridproxy/integration/env/machines"
)

// edgeProxy is what edgeadm makes of a manifest of kube-proxy: a copy of it on Nodes that are labelled as edge Nodes. There is no
// wrapper here, so it asks the API server.
var edgeProxy = strings.NewReplacer(
	"{name: kube-proxy}", "{name: edge-kube-proxy}",
	"{name: kube-proxy, namespace: kube-system, labels", "{name: edge-kube-proxy, namespace: edge-system, labels",
	"namespace: kube-system", "namespace: edge-system",
	"      priorityClassName: system-node-critical\n", "      affinity: "+edgeAffinity("Exists")+"\n",
)

func edgeAffinity(operator string) string {
	return `{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "superedge.io/node-edge", "operator": "` + operator + `"}]}]}}}`
}

// leaveSuperEdge: from both kube-proxies of edgeadm to gridproxy, installed without helm, and back.
func (w *migrationCluster) leaveSuperEdge() {
	w.MustKubectl(w.t, "label", "node", "bj-1", "superedge.io/node-edge=enable")
	w.MustKubectl(w.t, "create", "namespace", "edge-system")
	w.MustKubectl(w.t, "--namespace=kube-system", "patch", "daemonset", "kube-proxy", "--patch", `{"spec": {"template": {"spec": {"affinity": `+edgeAffinity("DoesNotExist")+`}}}}`)
	w.Apply(w.t, edgeProxy.Replace(w.manifest))
	before := w.conditions()
	w.wantProxies("kube-system", kubeProxy, "gz-1")
	w.wantProxies("edge-system", kubeProxy, "bj-1")

	w.follow("From SuperEdge's kube-proxy")
	w.shell.Env = []string{
		"API_SERVERS=" + w.shell.Run(w.t, `sed -n 's/^apiServers: \[\(.*\)\]$/\1/p' values.yaml`), "CLUSTER_CIDR=" + machines.ClusterCIDRs,
		"IMAGE=docker.io/library/gridproxy:dev",
	}
	w.follow("Without helm")
	w.wantProxies("kube-system", kubeProxy, "gz-1")
	w.wantProxies("edge-system", kubeProxy, "bj-1")
	w.wantProxies("gridproxy", gridproxy, "")
	w.follow("Switch all others")
	w.follow("Check")
	w.wantProxies("kube-system", kubeProxy, "")
	w.wantProxies("edge-system", kubeProxy, "")
	w.wantAnswers("closed", "bj-1", "bj-1")
	w.wantAnswers("closed", "gz-1", "gz-1")

	w.follow("The way back")
	w.follow("Leave SuperEdge's as they were")
	w.shell.Run(w.t, "kubectl delete -k overlay --timeout=60s")
	w.wantProxies("kube-system", kubeProxy, "gz-1")
	w.wantProxies("edge-system", kubeProxy, "bj-1")
	w.wantOpen("web", "closed")
	if after := w.conditions(); after != before {
		w.t.Errorf("the Nodes of kube-proxy were by\n%s\nand are by\n%s", before, after)
	}
}

// conditions are those on the Nodes of all DaemonSets of kube-proxy.
func (w *migrationCluster) conditions() string {
	w.t.Helper()
	return w.MustKubectl(w.t, "get", "daemonset", "--all-namespaces", "--selector="+kubeProxy, "--output=jsonpath={.items[*].spec.template.spec.affinity}")
}
