package assign_test

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// TestSelectorsOfEachOther: units that select by what other units set come to rest, each on what is
// right then.
func TestSelectorsOfEachOther(t *testing.T) {
	const absent, present = `{"matchExpressions": [{"key": "%s", "operator": "DoesNotExist"}]}`, `{"matchExpressions": [{"key": "%s", "operator": "Exists"}]}`
	for _, c := range []struct{ what, u, v, want, says string }{
		{"each wants the Nodes that the other has not", fmt.Sprintf(absent, "v"), fmt.Sprintf(absent, "u"), "u=nodeunits.superedge.io", ""},
		{"one wants what the other has, which wants what the one has not", fmt.Sprintf(present, "v"), fmt.Sprintf(absent, "u"), "v=nodeunits.superedge.io",
			"the NodeUnit u selects the Node a, but what it sets there would stop the selector of v from matching"},
		{"one wants what the other has", fmt.Sprintf(present, "v"), `{"matchLabels": {"rack": "1"}}`, "u=nodeunits.superedge.io v=nodeunits.superedge.io", ""},
		{"each wants what the other has", fmt.Sprintf(present, "v"), fmt.Sprintf(present, "u"), "", ""},
		{"one wants what the other's group sets", `{"matchLabels": {"g": "v"}}`, `{"matchLabels": {"rack": "1"}}`,
			"g=v u=nodeunits.superedge.io v=nodeunits.superedge.io", ""},
	} {
		cl := newCluster(t)
		cl.node("a", "kubelet", "rack=1")
		cl.unit("u", `{"selector": `+c.u+`}`)
		cl.unit("v", `{"selector": `+c.v+`}`)
		if strings.Contains(c.u, `"g"`) {
			cl.group("g", `{"nodeUnits": ["v"]}`)
		}
		cl.settle()
		if got := strings.TrimSpace(strings.ReplaceAll(cl.labels("a"), "rack=1", "")); strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("%s: the Node has %q, want %q", c.what, got, c.want)
		}
		for _, u := range []string{"u", "v"} {
			if got := says(cl.units[u].Status.Conditions, v1alpha2.ConditionConflict); (got != "") != (c.says != "") || !strings.Contains(got, c.says) {
				t.Errorf("%s: %s says %q, want %q", c.what, u, got, c.says)
			}
		}
	}
}

// TestGroupsOfUngrouped: a group that selects the units that are in no group, or not in another
// one, comes to rest.
func TestGroupsOfUngrouped(t *testing.T) {
	for selector, want := range map[string]string{
		`{"matchExpressions": [{"key": "g", "operator": "DoesNotExist"}]}`:                                 "g=u u=nodeunits.superedge.io",
		`{"matchExpressions": [{"key": "g", "operator": "NotIn", "values": ["nodegroups.superedge.io"]}]}`: "g=u u=nodeunits.superedge.io",
		`{"matchLabels": {"g": "nodegroups.superedge.io"}}`:                                                "u=nodeunits.superedge.io",
	} {
		c := newCluster(t)
		c.node("a", "kubelet")
		c.unit("u", `{"nodes": ["a"]}`)
		c.group("g", `{"selector": `+selector+`}`)
		c.settle()
		c.want("a", want)
	}
}

// TestAnySelectorsSettle: whatever units and groups select by, there is an end, and it does not
// depend on what Nodes carried of them before.
func TestAnySelectorsSettle(t *testing.T) {
	value := rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "u", "v", v1alpha2.UnitMark}), 1, 1)
	rapid.Check(t, func(r *rapid.T) {
		c := draw(r)
		key := rapid.SampledFrom([]string{"u", "v", "w", "g", "h", "x", "y", "zone"})
		for name, u := range c.units {
			if rapid.Bool().Draw(r, name+" selects by another's labels") {
				u.Spec.Selector = &v1alpha2.Selector{}
				for range rapid.IntRange(1, 2).Draw(r, "requirements") {
					u.Spec.Selector.MatchExpressions = append(u.Spec.Selector.MatchExpressions, requirement(r, key.Draw(r, "key"), value))
				}
				if rapid.IntRange(0, 3).Draw(r, "annotation") == 0 {
					u.Spec.Selector.Annotations = map[string]string{"m": "1"}
				}
			}
		}
		specs := map[string]v1alpha2.NodeUnitSpec{}
		for name, u := range c.units {
			specs[name] = *u.Spec.DeepCopy()
		}
		c.settle()
		first := text(labelsOf(c))
		// Everything goes, and comes again.
		for name := range c.units {
			c.units[name].Spec.Nodes, c.units[name].Spec.Selector = nil, nil
		}
		c.settle()
		for name := range c.units {
			c.units[name].Spec = specs[name]
		}
		c.settle()
		if again := text(labelsOf(c)); again != first {
			r.Fatalf("first %s, then %s", first, again)
		}
	})
}

func labelsOf(c *cluster) map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, n := range c.nodes {
		all[name] = n.Labels
	}
	return all
}

func requirement(r *rapid.T, key string, values *rapid.Generator[[]string]) metav1.LabelSelectorRequirement {
	op := rapid.SampledFrom([]string{"Exists", "DoesNotExist", "In", "NotIn"}).Draw(r, "operator")
	q := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOperator(op)}
	if op == "In" || op == "NotIn" {
		q.Values = values.Draw(r, "values")
	}
	return q
}
