package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refusedUnits is how many units TestRefusedEverywhere has, refusedWords how long a policy's
// message is, in bytes.
const (
	refusedUnits = 300
	refusedWords = 1500
)

// denyAll is a policy that refuses every Deployment, with the status code of a policy that names no
// reason: 422.
func denyAll() string {
	policy := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "no-deployments"},
		"spec": map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"deployments"},
			}}},
			"validations": []any{map[string]any{"expression": "false", "message": strings.Repeat("not here ", refusedWords/9)}},
		},
	}
	binding := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": "no-deployments"},
		"spec": map[string]any{"policyName": "no-deployments", "validationActions": []any{"Deny"}},
	}
	var text []string
	for _, o := range []any{policy, binding} {
		document, _ := json.Marshal(o) // texts alone cannot fail
		text = append(text, string(document))
	}
	return strings.Join(text, "\n---\n")
}

// TestRefusedEverywhere: a policy with a long message refuses the children of all of many units.
// The Grid says so, in an Event for each status and in a status that etcd takes, and goes on when
// the policy has gone and anything in the Grid changes.
func TestRefusedEverywhere(t *testing.T) {
	units := map[string]string{}
	for i := range refusedUnits {
		units[fmt.Sprintf("node-%03d", i)] = fmt.Sprintf("unit-%d", i)
	}
	w := newWorld(t, units)
	w.kubectl(denyAll(), "apply", "-f", "-")
	wait.Until(w.t, "the policy is in force", func() error { return w.probe(true) })
	w.apply(deploymentGrid("web", "replicas: 0"))
	w.run("refused", (*world).refusedEverywhere)
	w.run("allowed again", (*world).allowedAgain)
}

// probe says why a Deployment is refused although it should be accepted, or the other way round.
func (w *world) probe(refused bool) error {
	probe := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "probe"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "probe"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		},
	}}
	if err := w.client.Create(w.t.Context(), probe, client.DryRunAll); (err != nil) != refused {
		return errors.Join(fmt.Errorf("refused: %t, want %t", err != nil, refused), err)
	}
	return nil
}

func (w *world) refusedEverywhere() {
	t := w.t
	var s v1.DeploymentGridStatus
	wait.Until(w.t, "all units are Refused", func() error {
		g, _ := get(w, &v1.DeploymentGrid{}, "web")
		s = g.Status
		return wait.Check(s.FailedUnits == refusedUnits, "%d have failed", s.FailedUnits)
	})
	text, err := json.Marshal(s)
	must(w.t, err)
	if len(text) > 300_000 || len(text) < refusedUnits*300 {
		t.Errorf("the status has %d bytes", len(text))
	}
	wanted := map[string]metav1.ConditionStatus{v1.ConditionReady: "False", v1.ConditionDegraded: "True"}
	for _, c := range s.Conditions {
		if want, relevant := wanted[c.Type]; relevant && (c.Status != want || c.Reason != "UnitsFailed" || len(c.Message) > 2048) {
			t.Errorf("%+v", c)
		}
		if c.Type == v1.ConditionDegraded && strings.Count(c.Message, "denied request") != 1 {
			t.Errorf("Degraded does not name the reason once: %s", c.Message)
		}
	}
	if n := w.applies("web-unit-7"); n != 1 {
		t.Errorf("a child was applied %d times", n)
	}
	t.Logf("%d bytes; the first row: %+v", len(text), s.Units[0])
	w.fewEvents()
}

// fewEvents waits for the Events of the refusals. Children that are applied later than others, on a
// machine that is slow, have an Event of their own.
func (w *world) fewEvents() {
	wait.Until(w.t, "few Events Refused", func() error {
		found, err := eventsOf(w.t, w.client, "web", "Refused")
		return errors.Join(err, wait.Check(len(found) > 0 && len(found) <= refusedUnits/30, "there are %q", found))
	})
}

func (w *world) allowedAgain() {
	w.kubectl("", "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-deployments")
	wait.Until(w.t, "the policy is not in force any more", func() error { return w.probe(false) })
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"annotations":{"example.com/touched":"once"}}}`)
	wait.Until(w.t, "all units are Ready", func() error {
		w.finishRollouts("web")
		g, _ := get(w, &v1.DeploymentGrid{}, "web")
		want := fmt.Sprintf("%d/%d", refusedUnits, refusedUnits)
		return wait.Check(g.Status.ReadyRate == want, "ready %s, %d failed", g.Status.ReadyRate, g.Status.FailedUnits)
	})
	w.fewEvents()
}

// finishRollouts does what the Deployment controller does when it has no Pods to make.
func (w *world) finishRollouts(grid string) {
	var all appsv1.DeploymentList
	must(w.t, w.client.List(w.t.Context(), &all, client.InNamespace("default"), client.MatchingLabels{v1.LabelSelector: grid}))
	for i := range all.Items {
		w.finishRollout(&all.Items[i])
	}
}

func (w *world) finishRollout(d *appsv1.Deployment) {
	if d.Status.ObservedGeneration < d.Generation {
		patch := fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, d.Generation)
		must(w.t, w.client.Status().Patch(w.t.Context(), d, client.RawPatch(types.MergePatchType, patch)))
	}
}
