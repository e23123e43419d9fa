package grids

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// narrowRights are what the chart binds with controller.namespaces: the whole role in one
// namespace, and in the cluster what is in none.
const narrowRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: narrow, namespace: mine}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: grid-controller}
subjects: [{kind: ServiceAccount, namespace: mine, name: narrow}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: narrow}
rules:
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get]}
  - {apiGroups: [""], resources: [nodes], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: narrow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: narrow}
subjects: [{kind: ServiceAccount, namespace: mine, name: narrow}]
`

// TestNamespaces: a controller for one namespace expands its Grids with rights there alone, and
// asks for nothing in another one.
func TestNamespaces(t *testing.T) {
	f := newFleet(t, 2, 1)
	for _, name := range []string{"mine", "theirs"} {
		must(f.t, f.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	f.Apply(t, narrowRights)
	o := nodes.AsShipped() // its ClusterRole, which is bound to another account
	o.User, o.Count = "system:serviceaccount:mine:narrow", &nodes.Count{}
	o.Flags = []string{"--leader-elect=false", "--node-units=false", "--namespaces=mine"}
	c := f.GridController(t, o)
	c.WaitReady(t)
	for _, namespace := range []string{"mine", "theirs"} {
		f.Apply(t, strings.ReplaceAll(deploymentGrid("web", "replicas: 1"), `"namespace":"default"`, fmt.Sprintf(`"namespace":%q`, namespace)))
	}
	wait.Until(f.t, "the Grid is ready", func() error {
		_, err := f.Kubectl("wait", "dg/web", "--namespace=mine", "--for=condition=Ready", "--timeout=1s")
		return err
	})
	f.SetLabels(t, nodeName("unit-00", 0), map[string]string{"location": "unit-01"}) // Pods are looked for
	wait.Until(f.t, "the misplaced Pod is seen", func() error {
		out, err := f.Kubectl("get", "dg/web", "--namespace=mine", "--output=jsonpath={.status.units[?(@.value=='unit-00')].phase}")
		return errors.Join(err, wait.Check(out == "Lost", "unit-00 is %q", out))
	})
	for _, r := range o.Count.Requests(func(r nodes.Request) bool {
		if r.Resource == "namespaces" && r.Name == "mine" { // whether it exists: the right is not needed
			return false
		}
		return r.Code == 403 || r.Namespace == "theirs" || r.Namespace == "" && r.Resource != "nodes" && r.Resource != "" && !strings.HasPrefix(r.Resource, "customresourcedefinitions.")
	}) {
		t.Errorf("it asks for what it needs no right for: %s", r)
	}
	if out := f.MustKubectl(t, "get", "deployments", "--namespace=theirs", "--output=name"); out != "" {
		t.Errorf("there are children in another namespace: %s", out)
	}
}
