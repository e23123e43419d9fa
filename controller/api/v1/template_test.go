package v1_test

import (
	"encoding/json"
	"testing"

	v1 "gridproxy/controller/api/v1"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// grid holds what typed structs lose: fields that we do not know, nulls, empty values, numbers
// beyond float64.
const grid = `{"apiVersion":"superedge.io/v1","kind":"DeploymentGrid","metadata":{"name":"g"},"spec":{` +
	`"gridUniqKey":"location","template":{"big":9007199254740993,"replicas":2,"strategy":{},"z":null,"template":{"spec":{"newest":[{"a":1.50}]}}},` +
	`"templatePool":{"empty":{},"none":null,"odd":{"replicas":"two"}}},` +
	`"status":{"unitNumber":1,"offlineUnits":0,"states":{"beijing":{"readyReplicas":1,"conditions":[{"type":"Available"}]}}}}`

// TestTemplatesAreKept: what comes in goes out, whichever of the decoders and encoders of clients
// is used.
func TestTemplatesAreKept(t *testing.T) {
	decoders := map[string]func([]byte, any) error{"encoding/json": json.Unmarshal, "sigs.k8s.io/json": kjson.UnmarshalCaseSensitivePreserveInts}
	for name, decode := range decoders {
		t.Run(name, func(t *testing.T) {
			var g v1.DeploymentGrid
			must(t, decode([]byte(grid), &g))
			out, err := json.Marshal(g.DeepCopy())
			must(t, err)
			if diff := cmp.Diff(tree(t, grid), tree(t, string(out))); diff != "" {
				t.Errorf("(-in +out)\n%s", diff)
			}
			if got := string(g.Spec.Template.JSON); got != `{"big":9007199254740993,"replicas":2,"strategy":{},"z":null,"template":{"spec":{"newest":[{"a":1.50}]}}}` {
				t.Errorf("the template is not as written: %s", got)
			}
			if g.Spec.Template.Replicas == nil || *g.Spec.Template.Replicas != 2 {
				t.Errorf("read replicas %v, want 2", g.Spec.Template.Replicas)
			}
			if odd := g.Spec.TemplatePool["odd"]; odd.Replicas != nil {
				t.Errorf("read replicas %d where it is no number", *odd.Replicas)
			}
		})
	}
}

// TestUnstructuredIsTheSame: apimachinery's converter of unstructured objects sees the whole
// template, too.
func TestUnstructuredIsTheSame(t *testing.T) {
	var u unstructured.Unstructured
	must(t, u.UnmarshalJSON([]byte(grid)))
	var g v1.DeploymentGrid
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &g))
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g)
	must(t, err)
	if diff := cmp.Diff(u.Object["spec"], out["spec"]); diff != "" {
		t.Errorf("(-in +out)\n%s", diff)
	}
}

// TestNothingIsNothing: a template that is not there is not written.
func TestNothingIsNothing(t *testing.T) {
	out, err := json.Marshal(v1.ServiceGrid{})
	must(t, err)
	want := `{"metadata":{},"spec":{},"status":{}}`
	if diff := cmp.Diff(tree(t, want), tree(t, string(out))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCopiesShareNothing: what is done to a copy's template is not done to the original, as it was
// in SuperEdge (the shared nodeSelector).
func TestCopiesShareNothing(t *testing.T) {
	var g v1.StatefulSetGrid
	must(t, json.Unmarshal([]byte(grid), &g))
	c := g.DeepCopy()
	copy(c.Spec.Template.JSON, "XXXX")
	copy(c.Status.States["beijing"].JSON, "XXXX")
	*c.Spec.Template.Replicas = 9
	var again v1.StatefulSetGrid
	must(t, json.Unmarshal([]byte(grid), &again))
	if diff := cmp.Diff(again, g); diff != "" {
		t.Errorf("the original has changed (-before +after)\n%s", diff)
	}
}

func TestSchemeKnowsTheKinds(t *testing.T) {
	s := runtime.NewScheme()
	must(t, v1.AddToScheme(s))
	for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid", "ServiceGridList"} {
		if _, err := s.New(v1.GroupVersion().WithKind(kind)); err != nil {
			t.Error(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree is JSON with its numbers as they are written.
func tree(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	fields := map[string]json.RawMessage{}
	must(t, json.Unmarshal([]byte(text), &fields))
	out = map[string]any{}
	for name, raw := range fields {
		var u unstructured.Unstructured // its decoder keeps whole numbers whole
		must(t, u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","value":`+string(raw)+`}`)))
		out[name] = u.Object["value"]
	}
	return out
}
