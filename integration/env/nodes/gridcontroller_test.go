package nodes

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"
)

// TestRealController: what is shipped comes up with the rights that are shipped, hands over when it is
// stopped, and makes Pods in each unit.
func TestRealController(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{Manifests: []string{"../../../deploy/crds"}})
	addUnits(t, c)
	options := shipped()
	options.Count = &Count{}
	first := c.GridController(t, options)
	first.WaitReady(t)
	c.ApplyFile(t, "../../../deploy/samples/stateless")
	expectEndpoints(t, c, "servicegrid-demo-svc", "", 4)
	if writes := options.Count.Writes(); len(writes) == 0 {
		t.Error("children were made and no write was counted")
	}
	t.Logf("the controller asked:\n%s", Tally(options.Count.Requests(nil)))
	second := c.GridController(t, shipped())
	first.Stop()
	c.AddNode(t, "sh-1", map[string]string{unitKey: "shanghai"})
	second.WaitReady(t)
	expectEndpoints(t, c, "servicegrid-demo-svc", "", 6)
	if refused := options.Count.Requests(func(r Request) bool { return r.Code == http.StatusForbidden }); len(refused) > 0 {
		t.Errorf("the shipped rights do not suffice: %v\n%s", refused, first.Log())
	}
}

// shipped is AsShipped for a test in this folder, which is one deeper than those of integration.
func shipped() ControllerOptions {
	o := AsShipped()
	for i, file := range o.Manifests {
		o.Manifests[i] = "../" + file
	}
	return o
}

// standIn is called as grid-controller is and passes its servers' paths on to the API server: what may
// be read through it is what its user may read. The controller itself does
// not pass anything on.
const standIn = `#!/bin/sh
for a in "$@"; do
	case $a in
	--kubeconfig=*) config=${a#*=} ;;
	--healthz-bind-address=*) address=${a#*=} ;;
	--say=*) echo "${a#*=}" ;;
	esac
done
exec %s proxy --kubeconfig="$config" --address="${address%%:*}" --port="${address##*:}"
`

const rights = `# A comment before the first document.
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
  - {apiGroups: [""], resources: [nodes], verbs: [list]}
  - {nonResourceURLs: [/readyz], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reader, namespace: default}
spec:
  selector: {matchLabels: {app: reader}}
  template:
    metadata: {labels: {app: reader}}
    spec: {containers: [{name: reader, image: "reader:1"}]}
`

// TestControllerHasTheRightsOfItsUser also shows that it is counted, stands an outage, can be ended, and may come twice.
func TestControllerHasTheRightsOfItsUser(t *testing.T) {
	t.Parallel()
	c := ForTest(t, Options{})
	c.AddNode(t, "bj-1", nil)
	binary, manifest := filepath.Join(c.Dir(), "stand-in"), filepath.Join(c.Dir(), "rights.yaml")
	for file, text := range map[string]string{binary: fmt.Sprintf(standIn, c.Tools().Path("kubectl")), manifest: rights} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := ControllerOptions{
		Binary: binary, Manifests: []string{manifest}, User: "system:serviceaccount:default:reader",
		Flags: []string{"--say=hello"}, Count: &Count{},
	}
	first := c.GridController(t, options)
	first.WaitReady(t)
	if out := c.MustKubectl(t, "get", "deployments", "-o", "name"); out != "" {
		t.Errorf("the manifest's workload was applied: %s", out)
	}
	if nodes, err := first.Get(t.Context(), first.Healthz, "/api/v1/nodes"); err != nil || !strings.Contains(nodes, "bj-1") {
		t.Errorf("what the ClusterRole allows is answered with %v: %s", err, nodes)
	}
	if _, err := first.Get(t.Context(), first.Healthz, "/api/v1/secrets"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("what the ClusterRole does not allow is answered with %v", err)
	}
	want := "     1 list nodes\n     1 list secrets"
	got := Tally(options.Count.Requests(func(r Request) bool { return r.Resource != "" }))
	if got != want {
		t.Errorf("counted:\n%s\nwant:\n%s", got, want)
	}
	c.StopAPIServer()
	if nodes, err := first.Get(t.Context(), first.Healthz, "/api/v1/nodes"); err == nil {
		t.Errorf("a relay to a stopped API server answers %s", nodes)
	}
	c.StartAPIServer(t)
	wait.Until(t, "the relay passes requests on again", func() error {
		_, err := first.Get(t.Context(), first.Healthz, "/api/v1/nodes")
		return err
	})
	if !strings.Contains(first.Log(), "hello") {
		t.Errorf("the log is not what it printed: %s", first.Log())
	}
	first.Stop()
	if runs(first.PID()) {
		t.Error("a stopped controller runs")
	}
	options.Count = nil
	second := c.GridController(t, options)
	second.WaitReady(t)
	second.Kill()
	if runs(second.PID()) {
		t.Error("a killed controller runs")
	}
}
