package expand

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
)

// fieldsOfSuperEdge is what an update that makes a child owns, cut down.
const fieldsOfSuperEdge = `{"f:metadata":{"f:labels":{".":{},"f:superedge.io/grid-selector":{},"f:superedge.io/grid-uniq-key":{}}},"f:spec":{"f:replicas":{}}}`

func TestIsPredecessor(t *testing.T) {
	for _, c := range []struct {
		name, manager, fields string
		want                  bool
	}{
		{"made the child", "grid-program", fieldsOfSuperEdge, true},
		{"came back to a child of ours", "application-grid-controller", `{"f:spec":{"f:replicas":{}}}`, true},
		{"handed an object over by its label", "kubectl-label", `{"f:metadata":{"f:labels":{"f:superedge.io/grid-selector":{},"f:team":{}}}}`, false},
		{"changed something", "kubectl-edit", `{"f:metadata":{"f:labels":{"f:team":{}}},"f:spec":{"f:paused":{}}}`, false},
		{"nothing that can be read", "kubectl-edit", `[`, false},
	} {
		if got := IsPredecessor(c.manager, c.fields); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// superEdged is an Observed with one unit, whose child SuperEdge has made.
func superEdged(t *testing.T, template string) Observed {
	t.Helper()
	c := newCluster(t, "a")
	c.grid.Template = []byte(template)
	replicas := int32(4)
	c.foreign(Live{
		Name: "web-a", Owner: c.grid.UID, Labels: MakePairs(ownLabels()), Replicas: &replicas,
		NodeSelector: MakePairs(map[string]string{"zone": "a"}), TemplateHash: "1234",
		Predecessors: []Predecessor{{Manager: "application-grid-controller", Owned: fieldsOfSuperEdge}},
	})
	return c.observe(nil)
}

func theApply(t *testing.T, observed Observed) Apply {
	t.Helper()
	steps := Decide(observed).Steps
	if len(steps) != 1 {
		t.Fatalf("steps %v, want one", steps)
	}
	a, ok := steps[0].(Apply)
	if !ok {
		t.Fatalf("step %T, want an Apply", steps[0])
	}
	return a
}

// TestTakeOver: what a predecessor owns is taken over with the first apply, and with another one if
// it comes back.
func TestTakeOver(t *testing.T) {
	w := superEdged(t, deployment)
	a := theApply(t, w)
	if !slices.Equal(a.TakeOver, []string{"application-grid-controller"}) || a.TemplateHash != "1234" || a.HandOver != nil {
		t.Errorf("took over from %v, hash %q, handed over %v", a.TakeOver, a.TemplateHash, a.HandOver)
	}
	w.Applied[a.Child.Name] = Applied{UID: a.UID, Desired: a.Fingerprint}
	if again := theApply(t, w); len(again.TakeOver) != 1 {
		t.Errorf("the wish is as it was applied, but the predecessor owns fields: took over from %v", again.TakeOver)
	}
	w.Children[0].Predecessors = nil
	if steps := Decide(w).Steps; len(steps) != 0 {
		t.Errorf("there is nothing left to take over: %v", steps)
	}
}

// TestTakeOverReplicas: the number that the predecessor set becomes ours with all else of its, so
// it is handed over where the template says nothing about it (B-12).
func TestTakeOverReplicas(t *testing.T) {
	a := theApply(t, superEdged(t, strings.Replace(deployment, `"replicas": 2,`, "", 1)))
	if a.HandOver == nil || *a.HandOver != 4 {
		t.Errorf("handed over %v, want 4", a.HandOver)
	}
}

// TestTemplateHash: SuperEdge's label is not part of the desired child, whether or not the Grid
// still has it (B-10), and is restored where it exists.
func TestTemplateHash(t *testing.T) {
	plain := theApply(t, superEdged(t, deployment))
	marked := theApply(t, superEdged(t, strings.Replace(deployment, `"labels": {`, fmt.Sprintf(`"labels": {%q: "99", `, v1.LabelTemplateHash), 1)))
	if plain.Fingerprint != marked.Fingerprint {
		t.Error("the label in the Grid makes another wish")
	}
	podLabels := []string{"spec", "template", "metadata", "labels"}
	live := WithTemplateHash(plain.Child.Object, "1234")
	if SameTemplate(live, plain.Child.Object) || !SameTemplate(live, WithTemplateHash(marked.Child.Object, "1234")) {
		t.Error("the label is no change, or putting it back is one")
	}
	if got := textAt(live.Object, podLabels...); got[v1.LabelTemplateHash] != "1234" || got["appGrid"] != "echo" {
		t.Errorf("the Pods have the labels %v", got)
	}
	if got := textAt(plain.Child.Object.Object, podLabels...); got[v1.LabelTemplateHash] != "" {
		t.Errorf("the wish was changed: %v", got)
	}
}

// TestUnmarked: a child of SuperEdge's gets the annotation of its value when its Pod template
// changes, not before.
func TestUnmarked(t *testing.T) {
	w := superEdged(t, deployment)
	annotation := func() string { return theApply(t, w).Child.Object.GetAnnotations()[v1.AnnotationValue] }
	if got := annotation(); got != "" {
		t.Errorf("it has the annotation %q at the take-over", got)
	}
	w.Children[0].TemplateHash = ""
	if got := annotation(); got != "a" {
		t.Errorf("its template has changed, and it has the annotation %q", got)
	}
	w.Children[0].TemplateHash = "1234"
	set(&w.Children[0].Annotations, v1.AnnotationValue, "a")
	if got := annotation(); got != "a" {
		t.Errorf("it had the annotation, and has %q now", got)
	}
}
