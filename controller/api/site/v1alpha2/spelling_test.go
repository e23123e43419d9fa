package v1alpha2_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"

	"github.com/google/go-cmp/cmp"
)

// TestEitherSpelling: S-11, there is no webhook, so one function reads what was written in either
// version's spelling.
func TestEitherSpelling(t *testing.T) {
	for _, spec := range []string{
		`{"setNode": {"labels": {"a": "b"}, "taints": [{"key": "k", "effect": "NoSchedule"}]}}`,
		`{"setnode": {"labels": {"a": "b"}}, "taints": [{"key": "k", "effect": "NoSchedule"}]}`,
		// What SuperEdge's Go clients write besides: an empty struct in their own spelling.
		`{"setNode": {}, "setnode": {"labels": {"a": "b"}, "taints": [{"key": "k", "effect": "NoSchedule"}]}}`,
		`{"setNode": {"labels": {"a": "b"}, "taints": [{"key": "k", "effect": "NoSchedule"}]}, "setnode": {}}`,
	} {
		var unit v1alpha2.NodeUnitSpec
		if err := json.Unmarshal([]byte(spec), &unit); err != nil {
			t.Fatal(err)
		}
		want := v1alpha2.SetNode{
			Labels: map[string]v1alpha2.LabelValue{"a": "b"}, Taints: []v1alpha2.Taint{{Key: "k", Effect: "NoSchedule"}},
		}
		if diff := cmp.Diff(want, unit.Set()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", spec, diff)
		}
	}
	for _, spec := range []string{
		`{"nodeUnits": ["a"], "autoFindNodeKeys": ["k"]}`, `{"nodeunits": ["a"], "autofindnodekeys": ["k"]}`,
		`{"nodeUnits": [], "nodeunits": ["a"], "autofindnodekeys": ["k"]}`,
	} {
		var group v1alpha2.NodeGroupSpec
		if err := json.Unmarshal([]byte(spec), &group); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(group.Units(), []string{"a"}) || !cmp.Equal(group.FindKeys(), v1alpha2.FindKeys{"k"}) {
			t.Errorf("%s: got units %v and keys %v", spec, group.Units(), group.FindKeys())
		}
	}
}

func TestUsable(t *testing.T) {
	set := v1alpha2.SetNode{
		Labels:      map[string]v1alpha2.LabelValue{"good": "x", "bad key": "x", "value": "not good"},
		Annotations: map[string]string{"Example.com/any": "all sorts of things", "": "x"},
		Taints: []v1alpha2.Taint{
			{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}, {Key: "a", Value: "2", Effect: "NoSchedule"},
			{Key: "b", Effect: "Never"}, {Key: "", Effect: "NoSchedule"}, {Key: "c", Value: "not good", Effect: "NoSchedule"},
		},
	}
	use, errs := set.Usable()
	want := v1alpha2.SetNode{
		Labels:      map[string]v1alpha2.LabelValue{"good": "x"},
		Annotations: map[string]string{"Example.com/any": "all sorts of things"},
		Taints:      []v1alpha2.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "a", Effect: "NoExecute"}},
	}
	if diff := cmp.Diff(want, use); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(errs) != 7 {
		t.Errorf("%d errors, want 7: %v", len(errs), errs)
	}
}

func TestSelector(t *testing.T) {
	labels, annotations := map[string]string{"a": "1"}, map[string]string{"rack": "7"}
	for selector, want := range map[string]bool{
		`{}`:                             false,
		`{"matchLabels": {}}`:            false,
		`{"matchLabels": {"a": "1"}}`:    true,
		`{"annotations": {"rack": "7"}}`: true, // S-09: annotations count
		`{"annotations": {"rack": "8"}}`: false,
		`{"annotations": {"none": ""}}`:  false,
		`{"matchLabels": {"a": "2"}, "annotations": {"rack": "7"}}`:        false,
		`{"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}`: true,
	} {
		var s v1alpha2.Selector
		if err := json.Unmarshal([]byte(selector), &s); err != nil {
			t.Fatal(err)
		}
		matches, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := matches(labels, annotations); got != want {
			t.Errorf("%s: got %t, want %t", selector, got, want)
		}
	}
	var missing *v1alpha2.Selector
	if matches, err := missing.Compile(); err != nil || matches(labels, annotations) {
		t.Errorf("a missing selector selects, or fails: %v", err)
	}
	var s v1alpha2.Selector
	if err := json.Unmarshal([]byte(`{"matchExpressions": [{"key": "a", "operator": "Near"}]}`), &s); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compile(); err == nil || !strings.Contains(err.Error(), "Near") {
		t.Errorf("an unknown operator: got %v", err)
	}
}
