package grids

import (
	"fmt"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/nodes"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPolicies: the controller's account may write children of Grids and no other Deployments and
// Services, whatever its ClusterRole says. A field that no child has is a warning for whoever
// applies a Grid.
func TestPolicies(t *testing.T) {
	f := newFleet(t, 2, 1)
	c := f.controller("--leader-elect=false")
	f.addGrids(1, "replicas: 0")
	f.settled() // with the policy, as all tests that run the controller with the rights that are shipped
	c.Kill()

	account := f.as(nodes.AsShipped().User)
	labels := map[string]string{v1.LabelSelector: "grid-00"}
	foreign := serviceNamed("foreign", nil)
	must(f.t, f.client.Create(t.Context(), foreign))
	labelled := serviceNamed("labelled", labels)
	must(f.t, f.client.Create(t.Context(), labelled))
	taken := serviceNamed("taken", labels)
	owner := &corev1.ConfigMap{ObjectMeta: inDefault("owner")}
	must(f.t, f.client.Create(t.Context(), owner))
	taken.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
	must(f.t, f.client.Create(t.Context(), taken))
	child := f.child("grid-00-unit-00")

	change := func(o client.Object) error {
		return account.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`)))
	}
	for what, err := range map[string]error{
		"creating a Service that is no child":             account.Create(t.Context(), serviceNamed("new", nil)),
		"creating a Service with the label alone":         account.Create(t.Context(), serviceNamed("new", labels)),
		"changing a Service that is no child":             change(foreign),
		"deleting a Service that is no child":             account.Delete(t.Context(), foreign),
		"changing a Service that another controller owns": change(taken),
		"deleting a Service that another controller owns": account.Delete(t.Context(), taken),
		"creating a Deployment that is no child":          account.Create(t.Context(), &appsv1.Deployment{ObjectMeta: inDefault("new"), Spec: child.Spec}),
	} {
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(fmt.Sprint(err), "grid-controller may") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"changing a child":                   change(child),
		"changing a Service to be adopted":   change(labelled),
		"deleting a child":                   account.Delete(t.Context(), child),
		"creating a Service as another user": f.client.Create(t.Context(), serviceNamed("new", nil)),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	for template, want := range map[string]string{
		`"repicas": 3`:  "spec.template has fields that no child has: repicas",
		`"replicas": 3`: "",
	} {
		g := &v1.DeploymentGrid{ObjectMeta: inDefault("grid-of-" + fmt.Sprint(len(template)))}
		g.Spec = v1.WorkloadGridSpec{GridUniqKey: "location", Template: &v1.Template{JSON: []byte(`{"selector": {}, "template": {}, ` + template + `}`)}}
		if got := f.warnings(g); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("creating a Grid with the template %s: the warnings are %q, want %q", template, got, want)
		}
	}
}

// warnings creates an object and returns what the API server warns of.
func (f *fleet) warnings(o client.Object) string {
	f.t.Helper()
	var said strings.Builder
	config := f.Admin()
	config.WarningHandler = rest.NewWarningWriter(&said, rest.WarningWriterOptions{})
	c, err := client.New(config, client.Options{Scheme: f.client.Scheme()})
	must(f.t, err)
	must(f.t, c.Create(f.t.Context(), o))
	return said.String()
}

func inDefault(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func serviceNamed(name string, labels map[string]string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: inDefault(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	s.Labels = labels
	return s
}

// as is a client of another user.
func (f *fleet) as(user string) client.Client {
	f.t.Helper()
	config, err := f.Counted(user, nil)
	must(f.t, err)
	return newUserClient(f.t, config)
}
