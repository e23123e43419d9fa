package assign_test

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	"github.com/google/go-cmp/cmp"
)

// TestNews: each condition is reported once, when it appears, and again when it has another reason
// or returns.
func TestNews(t *testing.T) {
	c := newCluster(t)
	c.node("a", "kubelet")
	c.unit("u", `{"nodes": ["a", "later"], "autonomyLevel": "L4"}`)
	c.group("g", `{"nodeUnits": ["u"]}`)
	told := func() string {
		t.Helper()
		var all []string
		for range 5 {
			p := c.decide()
			for _, s := range append(p.Units, p.Groups...) {
				for _, n := range s.News {
					all = append(all, fmt.Sprintf("%s %s", s.Name, n.Reason))
				}
			}
			c.take(p)
		}
		return strings.Join(all, ", ")
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a Node is missing; the level is not implemented", func() {}, "u NodeNotFound"},
		{"another is missing too", func() { c.units["u"].Spec.Nodes = []string{"a", "later", "never"} }, ""},
		{"none is", func() { c.units["u"].Spec.Nodes = []string{"a"} }, ""},
		{"one is again", func() { c.units["u"].Spec.Nodes = []string{"a", "later"} }, "u NodeNotFound"},
		{"a conflict", func() { c.unit("v", `{"nodes": ["a"]}`); c.groups["g"].Spec.NodeUnits = []string{"u", "v"} }, "u Conflict, v Conflict, g Conflict"},
		{"something invalid", func() { c.units["v"].Spec.Taints = []v1alpha2.Taint{{Key: "k", Effect: "Never"}} }, "v InvalidSetNode"},
	} {
		step.do()
		if got := told(); got != step.want {
			t.Errorf("%s: told %q, want %q", step.what, got, step.want)
		}
	}
	p := c.decide()
	want := assign.Summary{
		Units: []assign.UnitNodes{{Unit: "u", Ready: 1}, {Unit: "v", Ready: 1}},
		Wrong: []assign.Wrong{
			{Kind: "NodeUnit", Name: "u", Condition: "Conflict"}, {Kind: "NodeUnit", Name: "u", Condition: "Missing"},
			{Kind: "NodeUnit", Name: "u", Condition: "NotImplemented"},
			{Kind: "NodeUnit", Name: "v", Condition: "Conflict"}, {Kind: "NodeUnit", Name: "v", Condition: "Invalid"},
			{Kind: "NodeGroup", Name: "g", Condition: "Conflict"},
		},
	}
	if diff := cmp.Diff(want, p.Summary); diff != "" {
		t.Errorf("how everything stands (-want +got)\n%s", diff)
	}
}
