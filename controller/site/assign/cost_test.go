package assign_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// TestIndexFindsAll: a unit's Nodes are those that its whole selector matches, whichever of its
// parts an index answers.
func TestIndexFindsAll(t *testing.T) {
	key, value := rapid.SampledFrom([]string{"x", "y"}), rapid.SampledFrom([]string{"", "1", "2", "3"})
	rapid.Check(t, func(r *rapid.T) {
		c := newCluster(r)
		for i := range 6 {
			c.node(fmt.Sprintf("n%d", i), "admin", "x="+value.Draw(r, "x"), "y="+value.Draw(r, "y"))
		}
		u := c.unit("u", `{}`)
		u.Spec.Selector = &v1alpha2.Selector{MatchLabels: map[string]string{}}
		for range rapid.IntRange(0, 2).Draw(r, "labels") {
			u.Spec.Selector.MatchLabels[key.Draw(r, "key")] = value.Draw(r, "value")
		}
		for range rapid.IntRange(0, 2).Draw(r, "expressions") {
			u.Spec.Selector.MatchExpressions = append(u.Spec.Selector.MatchExpressions, requirement(r, key.Draw(r, "key"), rapid.SliceOfN(value, 1, 3)))
		}
		matches, err := u.Spec.Selector.Compile()
		if err != nil {
			r.Fatal(err)
		}
		var want []string
		for name, n := range c.nodes {
			if matches(n.Labels, n.Annotations) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		c.settle()
		if got := c.units["u"].Status.ReadyNodes; !slices.Equal(got, want) {
			r.Fatalf("selector %s: got %v, want %v", text(u.Spec.Selector), got, want)
		}
	})
}

// TestStatusIsBounded: whatever the number of Nodes and units and the length of their names, a
// status stays small and says how many names it leaves out.
func TestStatusIsBounded(t *testing.T) {
	c := newCluster(t)
	long := strings.Repeat("x", 240)
	for i := range 1000 {
		c.node(fmt.Sprintf("%s-%04d", long, i), "kubelet", "os=linux")
		if i%2 == 0 {
			c.nodes[fmt.Sprintf("%s-%04d", long, i)].Status.Conditions[0].Status = corev1.ConditionFalse
		}
	}
	c.unit("u", `{"selector": {"matchLabels": {"os": "linux"}}}`)
	c.group("g", `{"selector": {"matchLabels": {"in": "g"}}}`)
	for i := range 700 {
		c.unit(fmt.Sprintf("%.50s-%04d", long, i), `{"nodes": ["absent-`+long+`"]}`).Labels = map[string]string{"in": "g"}
	}
	c.uses("u")
	c.settle()
	s := c.units["u"].Status
	if s.ReadyRate != "500/1000" || len(s.ReadyNodes)+s.MoreReadyNodes != 500 || len(s.NotReadyNodes)+s.MoreNotReadyNodes != 500 ||
		s.MoreReadyNodes == 0 || s.ReadyNodes[0] != long+"-0001" {
		t.Errorf("rate %s, %d+%d ready, %d+%d not ready", s.ReadyRate, len(s.ReadyNodes), s.MoreReadyNodes, len(s.NotReadyNodes), s.MoreNotReadyNodes)
	}
	if g := c.groups["g"].Status; *g.UnitNumber != 700 || len(g.NodeUnits) != 500 {
		t.Errorf("the group has %d units and lists %d", *g.UnitNumber, len(g.NodeUnits))
	}
	for name, status := range map[string]any{"unit": s, "group": c.groups["g"].Status} {
		if raw, err := json.Marshal(status); err != nil || len(raw) > 100_000 {
			t.Errorf("the status of the %s has %d bytes: %v", name, len(raw), err)
		}
	}
	i := slices.IndexFunc(c.decide().Summary.Units, func(u assign.UnitNodes) bool { return u.Unit == "u" })
	if got := c.decide().Summary.Units[i]; got.Ready != 500 || got.NotReady != 500 {
		t.Errorf("the summary says %v", got)
	}
}

// TestMatters: which changes of a Node matter.
func TestMatters(t *testing.T) {
	units := []*v1alpha2.NodeUnit{{Spec: v1alpha2.NodeUnitSpec{
		Selector:   &v1alpha2.Selector{Annotations: map[string]string{"selected": "1"}},
		SetNodeOld: &v1alpha2.SetNode{Annotations: map[string]string{"set": "1"}},
	}}}
	annotated := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations[key] = "new"
			own(n, "agent", metav1.ManagedFieldsOperationUpdate, nil, map[string]string{key: ""})
		}
	}
	for _, test := range []struct {
		what    string
		change  func(*corev1.Node)
		matters bool
	}{
		{"another version", func(*corev1.Node) {}, false},
		{"an annotation of another program", annotated("agent.example.com/seen"), false},
		{"an annotation that a unit selects by", annotated("selected"), true},
		{"an annotation that a unit sets", annotated("set"), true},
		{"the record of taints", annotated(v1alpha2.AnnotationTaints), true},
		{"what may be removed", annotated(v1alpha2.AnnotationAllowRemoval), true},
		{"a label", func(n *corev1.Node) { n.Labels["x"] = "y" }, true},
		{"a taint", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: "NoSchedule"}} }, true},
		{"readiness", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
	} {
		c := newCluster(t)
		before := c.node("a", "kubelet", "os=linux")
		before.ResourceVersion = "1"
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		test.change(after)
		assign.Trim(before)
		assign.Trim(after)
		if got := assign.Matters(before, after, assign.ReadAnnotations(units)); got != test.matters {
			t.Errorf("%s matters: %t, want %t", test.what, got, test.matters)
		}
	}
}
