package grids

import (
	"fmt"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFederation: the copy of a Grid in the namespace of another cluster gets no children and says
// why, and what the other cluster has written into its status stays. The commands of
// docs/migrate-from-superedge.md remove copies with SuperEdge's finalizer, and their namespace can
// be deleted. A copy whose label is removed instead is an ordinary Grid.
func TestFederation(t *testing.T) {
	f := newFleet(t, 2, 1)
	f.controller("--leader-elect=false")
	must(f.t, f.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member"}}))
	grid := func(namespace, name, label string) *v1.DeploymentGrid {
		g := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{label: "yes"}}}
		g.Spec = v1.WorkloadGridSpec{GridUniqKey: "location", Template: &v1.Template{JSON: []byte(`{"replicas": 0, "selector": {"matchLabels": {"a": "b"}},
			"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}`)}}
		return g
	}
	original, copied, freed := grid("default", "original", "superedge.io/fed"), grid("member", "original", v1.LabelDistributed), grid("member", "freed", v1.LabelDistributed)
	copied.Labels["superedge.io/fed"], copied.Finalizers = "yes", []string{"dis"}
	for _, g := range []*v1.DeploymentGrid{original, copied, freed} {
		must(f.t, f.client.Create(t.Context(), g))
	}
	now := func(g *v1.DeploymentGrid) *v1.DeploymentGrid {
		read := &v1.DeploymentGrid{}
		must(f.t, f.client.Get(t.Context(), client.ObjectKeyFromObject(g), read))
		return read
	}
	wait.Until(f.t, "the copies say why they are idle", func() error {
		for _, g := range []*v1.DeploymentGrid{copied, freed} {
			if s := now(g).Status; !meta.IsStatusConditionTrue(s.Conditions, v1.ConditionIdle) || len(s.Units) > 0 {
				return fmt.Errorf("the status of %s is %+v", g.Name, s)
			}
		}
		return nil
	})
	remote := now(copied)
	remote.Status.ReadyRate = "7/7"
	must(f.t, f.client.Status().Update(t.Context(), remote))
	remote.Annotations = map[string]string{"any": "change"}
	must(f.t, f.client.Update(t.Context(), remote))
	must(f.t, f.client.Patch(t.Context(), freed, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"superedge.io/dis":null}}}`))))
	wait.Until(f.t, "the freed copy is an ordinary Grid", func() error {
		s := now(freed).Status
		return wait.Check(meta.FindStatusCondition(s.Conditions, v1.ConditionIdle) == nil && len(s.Units) == 2, "its status is %+v", s)
	})
	if s := now(copied).Status; s.ReadyRate != "7/7" || !meta.IsStatusConditionTrue(s.Conditions, v1.ConditionIdle) {
		t.Errorf("the status of the copy is %+v", s)
	}

	shell := document.NewShell(t, f.Admin(), map[string]string{"kubectl": f.Tools().Path("kubectl")})
	for range 2 { // they can be repeated
		shell.Follow(t, document.Document{Path: "../../docs/migrate-from-superedge.md"}, "Leaving SuperEdge's federation")
	}
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(copied), &v1.DeploymentGrid{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the copy is still there: %v", err)
	}
	if labels := now(original).Labels; labels["superedge.io/fed"] != "" {
		t.Errorf("the original has the labels %v", labels)
	}
	now(freed)
}
