package chart

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"
)

// operator are stand-ins of the definitions of the Prometheus operator.
const operator = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
`

// TestServerAccepts: a real API server takes what the chart makes of every combination of values, with every field known
// to it; and the plain manifests.
func TestServerAccepts(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	c := nodes.ForTest(t, nodes.Options{APIServer: []string{"--allow-privileged=true"}})
	c.Apply(t, fmt.Sprintf(operator, "servicemonitor", "ServiceMonitor")+fmt.Sprintf(operator, "podmonitor", "PodMonitor")+fmt.Sprintf(operator, "prometheusrule", "PrometheusRule"))
	c.ApplyFile(t, folder+"/namespace.yaml")
	c.WaitForDefinitions(t)
	all := combinations([][]string{
		{`proxyMode="iptables"`, `proxyMode="ipvs"`},
		{`daemon.shadow=false`, `daemon.shadow=true`},
		{`daemon.serviceProxyName=""`, `daemon.serviceProxyName="trial"`},
		{`dns.enabled=false`, `dns.enabled=true`},
		{`controller={"enabled":true}`, `controller={"enabled":false}`, `controller={"replicas":1,"affinity":{"podAntiAffinity":{}},"resources":{}}`},
		{`crds.install=false daemon.updateStrategy="OnDelete" daemon.privilegedInit=false daemon.podSecurityContext={"seLinuxOptions":{"type":"spc_t"}} ` +
			`monitoring.podMonitor.enabled=true`, `apiServers=["10.0.0.1:6443","[fd00::1]:6443"] imagePullSecrets=[{"name":"mine"}] ` +
			`daemon.affinity={"nodeAffinity":{}} daemon.podAnnotations={"a":"b"} daemon.maxUnavailable=1 ` +
			`monitoring={"serviceMonitor":true,"prometheusRule":true,"dashboard":true,"labels":{"release":"prometheus"}}`},
	})
	// Most combinations have most objects in common: the test asks about each once.
	documents, combined := map[string]bool{}, 0
	for _, values := range all {
		if strings.Contains(values, `"ipvs"`) && strings.Contains(values, `"trial"`) {
			continue // which the chart refuses
		}
		if strings.Contains(values, `dns.enabled=true`) && (strings.Contains(values, `"trial"`) || strings.Contains(values, `shadow=true`)) {
			continue // this too
		}
		combined++
		text, err := h.Template(t.Context(), strings.Fields(values)...)
		must(t, err)
		for document := range strings.SplitSeq("\n"+text, "\n---\n") {
			documents[document] = true
		}
	}
	text := strings.Join(slices.Sorted(maps.Keys(documents)), "\n---\n")
	if _, err := c.KubectlIn(t.Context(), strings.NewReader(text), "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
		t.Error(err)
	}
	t.Logf("%d different objects of %d combinations of values are asked about", len(documents), combined)
	c.MustKubectl(t, "apply", "--dry-run=server", "--validate=strict", "-k", folder)
	wait.Until(t, "the API server takes the static Pod, once the namespace has its account, and its rights", func() error {
		_, err := c.Kubectl("apply", "--dry-run=server", "--validate=strict", "-f", folder+"/site-alone")
		return err
	})
	got := c.MustKubectl(t, "apply", "--server-side", "--dry-run=server", "-k", folder+"/crds")
	files, err := filepath.Glob(folder + "/crds/*.yaml")
	if err != nil || strings.Count(got, "serverside-applied") != len(files) {
		t.Errorf("deploy/crds has %d files, and its kustomization: %s%v", len(files), got, err)
	}
	if got := c.MustKubectl(t, "kustomize", folder); strings.Contains(got, "kind: CustomResourceDefinition") {
		t.Error("kubectl delete -k deploy/ would delete all Grids: a definition is in it")
	}
}

// combinations takes one of each.
func combinations(choices [][]string) []string {
	all := []string{""}
	for _, choice := range choices {
		var longer []string
		for _, start := range all {
			for _, c := range choice {
				longer = append(longer, start+" "+c)
			}
		}
		all = longer
	}
	return all
}
