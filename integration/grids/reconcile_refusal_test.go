package grids

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRefusals: what the API server will not take is reported in its words, and tried again after a
// pause.
func TestRefusals(t *testing.T) {
	w := newWorld(t, map[string]string{"bj-1": "beijing"})
	for _, c := range []struct{ name, template, words string }{
		{"invalid", `{"strategy": {"type": "Sometimes"}}`, "strategy"},
		{"untyped", `{"template": {"metadata": {"labels": {"app": "untyped"}}, "spec": {"containers": [{"name": "c", "image": "c", "env": [{"name": "A"}, {"name": "A"}]}]}}}`,
			"failed to create typed patch object"},
		{"unknown", `{"unheardOf": 1}`, "failed to create typed patch object"},
		{"type", `{"minReadySeconds": "many"}`, "minReadySeconds"},
	} {
		w.run(c.name, func(w *world) { w.refused(c.name, c.template, c.words) })
	}
	w.run("an immutable field", (*world).immutable)
	w.run("a replacement that was allowed before", (*world).recreated)
	w.run("an immutable Service", (*world).immutableService)
	w.run("a port that another Service has", (*world).takenPort)
	w.run("replicas", (*world).replicas)
}

// takenPort: a refusal that another object caused ends with its cause, without a change of the
// Grid.
func (w *world) takenPort() {
	spec := corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30123}}}
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: spec}
	must(w.t, w.client.Create(w.t.Context(), other))
	w.apply(`{"apiVersion":"superedge.io/v1","kind":"ServiceGrid","metadata":{"name":"port","namespace":"default"},"spec":{"gridUniqKey":"location",
		"template":{"type":"NodePort","ports":[{"port":80,"nodePort":30123}]}}}`)
	expect := func(degraded metav1.ConditionStatus, reason string) {
		wait.Until(w.t, "the ServiceGrid says so", func() error {
			g, _ := get(w, &v1.ServiceGrid{}, "port")
			return checkCondition(g.Status.Conditions, v1.ConditionDegraded, degraded, reason, "")
		})
	}
	expect(metav1.ConditionTrue, "Refused")
	must(w.t, w.client.Delete(w.t.Context(), other))
	expect(metav1.ConditionFalse, "AsExpected")
}

func (w *world) applies(child string) int {
	return len(w.count.Requests(func(r nodes.Request) bool { return r.Verb == "apply" && r.Name == child }))
}

func (w *world) refused(name, template, words string) {
	t := w.t
	w.apply(deploymentGrid(name, template))
	row := w.expectRow(name, "beijing", v1.UnitFailed, "Refused")
	if !strings.Contains(row.Message, words) {
		t.Errorf("the row says %q, want the server's words %q in it", row.Message, words)
	}
	for range 3 {
		w.reconciled(&v1.DeploymentGrid{}, name)
	}
	if n := w.applies(name + "-beijing"); n != 1 {
		t.Errorf("applied %d times, want 1", n)
	}
	w.apply(deploymentGrid(name, ""))
	w.expectRow(name, "beijing", v1.UnitProgressing, "")
	if n := w.applies(name + "-beijing"); n != 2 {
		t.Errorf("applied %d times after the change, want 2", n)
	}
}

// immutable: B-15.
func (w *world) immutable() {
	t := w.t
	w.apply(deploymentGrid("web", ""))
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	changed := `{"selector": {"matchLabels": {"app": "new"}}, "template": {"metadata": {"labels": {"app": "new"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}}`
	w.apply(deploymentGrid("web", changed))
	row := w.expectRow("web", "beijing", v1.UnitFailed, "ImmutableField")
	t.Logf("the row says: %s", row.Message)
	n := w.applies("web-beijing")
	w.reconciled(&v1.DeploymentGrid{}, "web")
	if after := w.applies("web-beijing"); after != n {
		t.Errorf("applied %d times more", after-n)
	}
}

// recreated: B-15, nothing happens in the cluster between the API server's refusal and the
// replacement, so nothing but the refusal can lead to it. The new child has the replicas that
// another client gave the old one.
func (w *world) recreated() {
	w.apply(deploymentGrid("again", ""))
	w.patch(&v1.DeploymentGrid{}, "again", `{"metadata":{"annotations":{"superedge.io/on-immutable-change":"Recreate"}}}`)
	w.expectRow("again", "beijing", v1.UnitProgressing, "")
	w.patch(&appsv1.Deployment{}, "again-beijing", `{"spec":{"replicas":5}}`)
	before, _ := get(w, &appsv1.Deployment{}, "again-beijing")
	w.patch(&v1.DeploymentGrid{}, "again", `{"spec":{"template":{"selector":{"matchLabels":{"app":"new"}},"template":{"metadata":{"labels":{"app":"new"}}}}}}`)
	wait.Until(w.t, "it is replaced", func() error {
		after, ok := get(w, &appsv1.Deployment{}, "again-beijing")
		if !ok || after.UID == before.UID || after.Spec.Selector.MatchLabels["app"] != "new" {
			return fmt.Errorf("there is %s with the selector %v, before there was %s", after.UID, after.Spec.Selector, before.UID)
		}
		if *after.Spec.Replicas != 5 {
			w.t.Fatalf("%d replicas, before there were 5", *after.Spec.Replicas)
		}
		handedOver := slices.ContainsFunc(after.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == grid.ReplicasManager })
		return wait.Check(handedOver, "the replicas are not handed over")
	})
	w.expectRow("again", "beijing", v1.UnitProgressing, "")
}

func (w *world) immutableService() {
	headless := func(ip string) string {
		return `{"apiVersion":"superedge.io/v1","kind":"ServiceGrid","metadata":{"name":"web","namespace":"default"},"spec":{"gridUniqKey":"location","template":{"clusterIP":"` +
			ip + `","ports":[{"port":80}]}}}`
	}
	w.apply(strings.Replace(headless("x"), `"clusterIP":"x",`, "", 1))
	w.settled(&v1.ServiceGrid{}, "web")
	w.apply(headless("None"))
	wait.Until(w.t, "the ServiceGrid says so", func() error {
		g, _ := get(w, &v1.ServiceGrid{}, "web")
		return checkCondition(g.Status.Conditions, v1.ConditionDegraded, metav1.ConditionTrue, "ImmutableField", "")
	})
}

// replicas: when they leave the template they stay, and are whoever's who scales (B-02, B-12).
func (w *world) replicas() {
	w.apply(deploymentGrid("scaled", "replicas: 3"))
	w.expectRow("scaled", "beijing", v1.UnitProgressing, "")
	w.apply(deploymentGrid("scaled", ""))
	w.settled(&v1.DeploymentGrid{}, "scaled")
	w.expectReplicas(3)
	w.scale(7)
	w.reconciled(&v1.DeploymentGrid{}, "scaled")
	w.apply(deploymentGrid("scaled", "minReadySeconds: 1"))
	w.settled(&v1.DeploymentGrid{}, "scaled")
	w.expectReplicas(7)
	w.apply(deploymentGrid("scaled", "replicas: 2"))
	w.settled(&v1.DeploymentGrid{}, "scaled")
	w.expectReplicas(2)
	w.scale(5) // no one else's any more
	wait.Until(w.t, "the replicas are the template's", func() error {
		d, _ := get(w, &appsv1.Deployment{}, "scaled-beijing")
		return wait.Check(*d.Spec.Replicas == 2, "they are not")
	})
	w.apply(deploymentGrid("scaled", ""))
	w.settled(&v1.DeploymentGrid{}, "scaled")
	w.expectReplicas(2)
}

func (w *world) expectReplicas(n int32) {
	w.t.Helper()
	if d, _ := get(w, &appsv1.Deployment{}, "scaled-beijing"); *d.Spec.Replicas != n {
		w.t.Errorf("%d replicas, want %d", *d.Spec.Replicas, n)
	}
}

// scale does what a HorizontalPodAutoscaler does.
func (w *world) scale(n int32) {
	w.t.Helper()
	d, _ := get(w, &appsv1.Deployment{}, "scaled-beijing")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	must(w.t, w.client.SubResource("scale").Update(w.t.Context(), d, client.WithSubResourceBody(scale), client.FieldOwner("horizontal-pod-autoscaler")))
}
