package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pos is a Grid that is distributed, with these annotations too.
func pos(annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "superedge.io/v1", "kind": "DeploymentGrid",
		"metadata": map[string]any{
			"name": "pos", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": int64(3),
			"finalizers":      []any{"superedge.io/federation", "example.com/other"},
			"ownerReferences": []any{map[string]any{"kind": "A", "name": "a"}},
			"labels": map[string]any{
				"superedge.io/fed": "yes", "superedge.io/hub": "other", "app": "pos",
				"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/name": "pos", "kustomize.toolkit.fluxcd.io/name": "k",
			},
		},
		"spec":   map[string]any{"gridUniqKey": "zone", "template": map[string]any{"text": "<a> & b", "n": int64(3)}},
		"status": map[string]any{"unitNumber": int64(3)},
	}}
	o.SetAnnotations(annotations)
	return o
}

func TestRead(t *testing.T) {
	g := Read("hub", pos(map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": "{}", "superedge.io/clusters": "region=east", "superedge.io/from": "x", "superedge.io/from-revision": "y",
		"argocd.argoproj.io/sync-options": "Prune=false", "meta.helm.sh/release-name": "r", "helm.sh/hook": "h", "config.kubernetes.io/local-config": "true",
		"internal.config.kubernetes.io/index": "1", "config.k8s.io/owning-inventory": "i", "kustomize.toolkit.fluxcd.io/reconcile": "disabled",
		"reconcile.fluxcd.io/requestedAt": "t", "kustomize.config.k8s.io/behavior": "merge", "superedge.io/paused": "true", "example.com/note": "<n>",
		"nothelm.sh/x": "kept",
	}))
	want := `{"apiVersion":"superedge.io/v1","kind":"DeploymentGrid","metadata":{"name":"pos","namespace":"shop",` +
		`"labels":{"app":"pos","app.kubernetes.io/name":"pos","superedge.io/hub":"hub"},` +
		`"annotations":{"example.com/note":"<n>","nothelm.sh/x":"kept","superedge.io/from":"hub/u-1",` +
		`"superedge.io/from-revision":"REVISION","superedge.io/paused":"true"}},` +
		`"spec":{"gridUniqKey":"zone","template":{"n":3,"text":"<a> & b"}}}`
	if got := strings.Replace(string(g.Content.Object), g.Content.Revision, "REVISION", 1); got != want {
		t.Errorf("sent is\n%s\nwant\n%s", got, want)
	}
	if len(g.Content.Revision) != 16 || !g.Finalizer || g.Deleting || !g.Content.Wanted || g.Content.Fault != "" || g.Content.Weight == 0 {
		t.Errorf("read is %+v", g)
	}
	if s := g.Content.Selects; s(nil) || !s(map[string]string{"region": "east"}) {
		t.Error("the selector is read otherwise")
	}
	other := pos(nil)
	other.Object["spec"] = map[string]any{"gridUniqKey": "region"}
	if Read("hub", other).Content.Revision == Read("hub", pos(nil)).Content.Revision {
		t.Error("another spec has the same revision")
	}
}

func TestFaults(t *testing.T) {
	secret := pos(nil)
	secret.SetKind("Secret")
	large := pos(nil)
	large.Object["spec"] = map[string]any{"text": strings.Repeat("x", objectMax)}
	for what, c := range map[string]struct {
		object *unstructured.Unstructured
		want   string
	}{
		"a bad selector":  {pos(map[string]string{"superedge.io/clusters": "region in (\n"}), "is not a label selector"},
		"a long selector": {pos(map[string]string{"superedge.io/clusters": strings.Repeat("a", 5000)}), "above the bound of 4096"},
		"many demands":    {pos(map[string]string{"superedge.io/clusters": strings.Repeat("a=b,", requirementsMax) + "c"}), "21 requirements, above the bound of 20"},
		"a bad namespace": {pos(map[string]string{"superedge.io/target-namespace": "A b"}), "is not the name of a namespace"},
		"no namespace":    {pos(map[string]string{"superedge.io/target-namespace": ""}), "is not the name of a namespace"},
		"a circle":        {pos(map[string]string{"superedge.io/from": "hub/u-9"}), "it would be sent in a circle"},
		"a large Grid":    {large, "above the bound of 700000"},
		"another kind":    {secret, "is not a kind that is distributed"},
	} {
		content := Read("hub", c.object).Content
		if !strings.Contains(content.Fault, c.want) || content.Object != nil || strings.ContainsAny(content.Fault, "\n") || len(content.Fault) > 1000 {
			t.Errorf("%s: %q, want %q", what, content.Fault, c.want)
		}
	}
}

// TestCopies: what SuperEdge has made for another cluster is not distributed; what another hub has
// sent is, as a Grid of this one.
func TestCopies(t *testing.T) {
	superedge := pos(nil)
	superedge.SetLabels(map[string]string{"superedge.io/fed": "yes", "superedge.io/dis": "yes"})
	if Read("hub", superedge).Content.Wanted {
		t.Error("a Grid that represents another cluster is distributed")
	}
	c := Read("hub", pos(map[string]string{"superedge.io/from": "another-hub/u-9"})).Content
	if !c.Wanted || c.Fault != "" || !strings.Contains(string(c.Object), `"superedge.io/from":"hub/u-1"`) {
		t.Errorf("of a Grid of another hub it is read %q, %s", c.Fault, c.Object)
	}
}
