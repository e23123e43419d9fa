package superedge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/cmd/grid-controller/migrate"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const theCRD = "nodegroups.site.superedge.io"

// storedGroups is an API server with SuperEdge's definition of NodeGroups, and more objects than a
// page has.
type storedGroups struct {
	*testing.T
	client client.Client
}

// hook is called with each line that a migration prints.
type hook func(string)

// Write passes the text on.
func (h hook) Write(p []byte) (int, error) {
	h(string(p))
	return len(p), nil
}

func newStoredGroups(t *testing.T) *storedGroups {
	t.Helper()
	c, err := migrate.NewClient(apiserver.ForTest(t, apiserver.Options{}).Admin())
	w := &storedGroups{t, c}
	w.must(err)
	w.must(c.Create(t.Context(), w.fixture("superedge-v1alpha1.yaml")))
	wait.Until(t, "v1alpha1 is served", func() error { return c.List(t.Context(), newList("v1alpha1")) })
	for i := range migrate.PageSize + 1 {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"nodeunits": []any{"beijing"}}}}
		o.SetGroupVersionKind(siteKind("v1alpha1", "NodeGroup"))
		o.SetName(fmt.Sprintf("group-%03d", i))
		w.must(c.Create(t.Context(), o))
	}
	return w
}

func (w *storedGroups) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *storedGroups) fixture(name string) *apiext.CustomResourceDefinition {
	w.Helper()
	text, err := os.ReadFile("testdata/" + name)
	w.must(err)
	for reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		d := &apiext.CustomResourceDefinition{}
		w.must(reader.Decode(d))
		if d.Name == theCRD {
			return d
		}
	}
}

func siteKind(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "site.superedge.io", Version: version, Kind: kind}
}

func newList(version string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(siteKind(version, "NodeGroupList"))
	return l
}

func (w *storedGroups) definition() *apiext.CustomResourceDefinition {
	w.Helper()
	d := &apiext.CustomResourceDefinition{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Name: theCRD}, d))
	return d
}

// versions are the resourceVersions of all objects and of the definition.
func (w *storedGroups) versions(version string) []string {
	w.Helper()
	l := newList(version)
	w.must(w.client.List(w.Context(), l))
	all := []string{w.definition().ResourceVersion}
	for _, o := range l.Items {
		all = append(all, o.GetName()+" "+o.GetResourceVersion())
	}
	return all
}

// migrate does the command's work with a shorter pause: there is one API server to learn of a definition.
func (w *storedGroups) migrate(dryRun bool, out io.Writer) error {
	return migrate.Run(w.Context(), w.client, migrate.Options{Out: out, DryRun: dryRun, Pause: time.Second})
}

// TestMigration: a dry run writes nothing. An object that is refused is named, and stops neither
// the others nor a later run. A definition that another program restores in the meantime is not
// called ours.
func TestMigration(t *testing.T) {
	w := newStoredGroups(t)
	before := w.versions("v1alpha1")
	var text bytes.Buffer
	w.must(w.migrate(true, &text))
	if !slices.Equal(before, w.versions("v1alpha1")) || !strings.Contains(text.String(), "would be replaced by ours") {
		t.Errorf("a dry run wrote, or said nothing of what it would:\n%s", &text)
	}

	old := w.fixture("superedge-v1alpha2.yaml")
	err := w.migrate(false, hook(func(said string) {
		if strings.Contains(said, "rewritten as v1alpha2") {
			d := w.definition()
			d.Spec = old.Spec
			w.must(w.client.Update(t.Context(), d))
		}
	}))
	if !errors.Is(err, migrate.ErrPutBack) || slices.Equal(w.definition().Status.StoredVersions, []string{"v1alpha2"}) {
		t.Errorf("SuperEdge's definition was put back, and the error is: %v", err)
	}

	w.refuse("group-007")
	err = w.migrate(false, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "NodeGroup group-007") || strings.Contains(err.Error(), "group-008") || !strings.Contains(err.Error(), "run this again") {
		t.Errorf("one object was refused, and the error is: %v", err)
	}
	if got := w.definition().Status.StoredVersions; len(got) != 2 {
		t.Errorf("one object was refused, and all are said to be stored as %v", got)
	}

	w.must(w.client.Delete(t.Context(), policyBinding()))
	text.Reset()
	wait.Until(t, "all objects are migrated", func() error { return w.migrate(false, &text) })
	if got := w.definition().Status.StoredVersions; !slices.Equal(got, []string{"v1alpha2"}) {
		t.Errorf("the objects are stored as %v", got)
	}
	if want := fmt.Sprintf("%d objects", migrate.PageSize+1); !strings.Contains(text.String(), want) {
		t.Errorf("%q is not in:\n%s", want, &text)
	}
	before = w.versions("v1alpha2")
	w.must(w.migrate(false, io.Discard))
	if !slices.Equal(before, w.versions("v1alpha2")) {
		t.Error("there was nothing to do, and something was written")
	}
	w.storedAnew()
}

// storedAnew: an API server that does not know v1alpha1 at all can read every object, so none is stored as that.
func (w *storedGroups) storedAnew() {
	w.Helper()
	d := w.definition()
	d.Spec.Versions = slices.DeleteFunc(d.Spec.Versions, func(v apiext.CustomResourceDefinitionVersion) bool { return v.Name == "v1alpha1" })
	w.must(w.client.Update(w.Context(), d))
	wait.Until(w, "v1alpha1 is no longer served", func() error {
		err := w.client.List(w.Context(), newList("v1alpha1"))
		return wait.Check(err != nil, "it is")
	})
	l := newList("v1alpha2")
	w.must(w.client.List(w.Context(), l))
	if len(l.Items) != migrate.PageSize+1 {
		w.Errorf("%d objects can be read, want %d", len(l.Items), migrate.PageSize+1)
	}
}

// refuse has a policy refuse every update of one NodeGroup.
func (w *storedGroups) refuse(name string) {
	w.Helper()
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{"site.superedge.io"}, "apiVersions": []any{"*"}, "operations": []any{"UPDATE"}, "resources": []any{"nodegroups"},
		}}},
		"validations": []any{map[string]any{"expression": fmt.Sprintf("object.metadata.name != %q", name), "message": "it is kept as it is"}},
	}}}
	policy.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"})
	policy.SetName("keep")
	w.must(w.client.Create(w.Context(), policy))
	w.must(w.client.Create(w.Context(), policyBinding()))
	ours, err := migrate.Definitions() // SuperEdge's webhook would answer no request
	w.must(err)
	d := w.definition()
	d.Spec = ours[slices.IndexFunc(ours, func(d apiext.CustomResourceDefinition) bool { return d.Name == theCRD })].Spec
	w.must(w.client.Update(w.Context(), d))
	wait.Until(w, "the policy is enforced", func() error {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(siteKind("v1alpha2", "NodeGroup"))
		if err := w.client.Get(w.Context(), client.ObjectKey{Name: name}, o); err != nil {
			return err
		}
		o.SetLabels(map[string]string{"tried": "yes"})
		err := w.client.Update(w.Context(), o, client.DryRunAll)
		return wait.Check(err != nil, "an update was accepted")
	})
}

func policyBinding() *unstructured.Unstructured {
	binding := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"policyName": "keep", "validationActions": []any{"Deny"}}}}
	binding.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"})
	binding.SetName("keep")
	return binding
}
