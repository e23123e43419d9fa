package grids

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeOf is a Node that is ready.
func nodeOf(name, key, unit string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: unit}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// TestOwnership: whose child an object is, and when it goes.
func TestOwnership(t *testing.T) {
	w := newWorld(t, map[string]string{"bj-1": "beijing", "gz-1": "guangzhou", "sh-1": "shanghai"})
	w.run("somebody else's object stays as it is", (*world).collision)
	w.run("an object that comes while the child is made", (*world).raced)
	w.run("adoption after an orphan delete", (*world).adoption)
	w.run("a lost unit", (*world).lost)
	w.run("a misplaced Pod", (*world).strayPod)
	w.run("an unwanted child is released", (*world).released)
}

const mine = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: mine-beijing, namespace: default, labels: {app: mine}}
spec:
  selector: {matchLabels: {app: mine}}
  template:
    metadata: {labels: {app: mine}}
    spec: {containers: [{name: mine, image: "mine:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: mine-svc, namespace: default}
spec: {ports: [{port: 80}]}
`

// collision: the objects stay byte-equal, also while the Grid goes; when one goes the child comes (B-07).
func (w *world) collision() {
	t := w.t
	w.apply(mine)
	deployment, service := w.raw(&appsv1.Deployment{}, "mine-beijing"), w.raw(&corev1.Service{}, "mine-svc")
	w.apply(deploymentGrid("mine", ""))
	w.apply(`{"apiVersion":"superedge.io/v1","kind":"ServiceGrid","metadata":{"name":"mine","namespace":"default"},"spec":{"gridUniqKey":"location","template":{"ports":[{"port":81}]}}}`)
	row := w.expectRow("mine", "beijing", v1.UnitFailed, "NameCollision")
	t.Logf("the row says: %s", row.Message)
	w.expectRow("mine", "guangzhou", v1.UnitProgressing, "") // the others go on (B-06)
	w.settled(&v1.ServiceGrid{}, "mine")
	w.reconciled(&v1.DeploymentGrid{}, "mine")
	same := func() {
		t.Helper()
		if diff := cmp.Diff(deployment, w.raw(&appsv1.Deployment{}, "mine-beijing")); diff != "" {
			t.Errorf("the Deployment changed: %s", diff)
		}
		if diff := cmp.Diff(service, w.raw(&corev1.Service{}, "mine-svc")); diff != "" {
			t.Errorf("the Service changed: %s", diff)
		}
	}
	same()
	w.expectEvent("mine", "NameCollision")
	w.kubectl("", "delete", "sg", "mine")
	same()
	w.kubectl("", "delete", "deployment", "mine-beijing", "--cascade=background")
	w.expectRow("mine", "beijing", v1.UnitProgressing, "")
	w.kubectl("", "delete", "dg", "mine")
	w.kubectl("", "delete", "deployment", "--all", "--cascade=background")
}

// raced: somebody makes an object of the name after the controller has found it free, and before it applies.
func (w *world) raced() {
	var once sync.Once
	theirs := ""
	before := func(r *http.Request) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/raced-beijing") {
			once.Do(func() {
				w.apply(strings.ReplaceAll(strings.Split(mine, "---")[0], "mine", "raced"))
				theirs = w.raw(&appsv1.Deployment{}, "raced-beijing")
			})
		}
	}
	w.before.Store(&before)
	defer w.before.Store(nil)
	w.apply(deploymentGrid("raced", ""))
	w.expectRow("raced", "beijing", v1.UnitFailed, "NameCollision")
	if diff := cmp.Diff(theirs, w.raw(&appsv1.Deployment{}, "raced-beijing")); diff != "" {
		w.t.Errorf("(-theirs +now)\n%s", diff)
	}
	w.kubectl("", "delete", "dg", "raced")
	w.kubectl("", "delete", "deployment", "--all", "--cascade=background")
}

func (w *world) expectEvent(grid, reason string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("an Event %s of %s", reason, grid), func() error {
		events := &corev1.EventList{}
		w.must(w.client.List(w.t.Context(), events, client.InNamespace("default")))
		for _, e := range events.Items {
			if e.Reason == reason && e.InvolvedObject.Name == grid {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
}

// adoption: the test does what the garbage collector does with an orphan delete.
func (w *world) adoption() {
	t := w.t
	w.apply(deploymentGrid("web", ""))
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	before, _ := get(w, &appsv1.Deployment{}, "web-beijing")
	w.kubectl("", "delete", "dg", "web", "--cascade=orphan", "--wait=false")
	for _, unit := range []string{"beijing", "guangzhou", "shanghai"} {
		w.patch(&appsv1.Deployment{}, "web-"+unit, `{"metadata":{"ownerReferences":null}}`)
	}
	w.count.Reset()
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"finalizers":null}}`)
	w.apply(deploymentGrid("web", "minReadySeconds: 5"))
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	after, _ := get(w, &appsv1.Deployment{}, "web-beijing")
	if after.UID != before.UID || len(after.OwnerReferences) != 1 || after.OwnerReferences[0].UID == before.OwnerReferences[0].UID {
		t.Errorf("not adopted: %s was %s, owners %v", after.UID, before.UID, after.OwnerReferences)
	}
	if after.Spec.MinReadySeconds != 5 {
		t.Error("what was adopted is not what the Grid wants")
	}
}

// lost: the clock is on the child; it stops when the unit is back, and ends in a deletion when it is over.
func (w *world) lost() {
	t := w.t
	w.label("gz-1", "")
	row := w.expectRow("web", "guangzhou", v1.UnitLost, "UnitLost")
	d, _ := get(w, &appsv1.Deployment{}, "web-guangzhou")
	if d.Annotations[v1.AnnotationLostAt] == "" || row.LostAt == nil {
		t.Errorf("no clock: %v, %+v", d.Annotations, row)
	}
	w.expectEvent("web", "UnitLost")
	w.ahead.Store(int64(4 * time.Minute))
	w.reconciled(&v1.DeploymentGrid{}, "web")
	w.label("gz-1", "guangzhou")
	w.expectRow("web", "guangzhou", v1.UnitProgressing, "")
	if d, _ := get(w, &appsv1.Deployment{}, "web-guangzhou"); d.Annotations[v1.AnnotationLostAt] != "" {
		t.Errorf("the clock runs on: %v", d.Annotations)
	}
	w.expectEvent("web", "UnitReturned")
	w.label("gz-1", "")
	w.expectRow("web", "guangzhou", v1.UnitLost, "UnitLost")
	w.ahead.Add(int64(6 * time.Minute))
	w.reconciled(&v1.DeploymentGrid{}, "web")
	wait.Until(w.t, "the child is gone", func() error {
		if _, ok := get(w, &appsv1.Deployment{}, "web-guangzhou"); ok {
			return errors.New("it is not")
		}
		return unequal(v1.UnitStatus{}, w.row("web", "guangzhou"))
	})
	w.expectEvent("web", "UnitRemoved")
	w.label("gz-1", "guangzhou")
	w.expectRow("web", "guangzhou", v1.UnitProgressing, "")
}

// strayPod: a Pod on a Node that has left its unit is counted at once, and evicted after the grace.
func (w *world) strayPod() {
	t := w.t
	w.must(w.client.Create(t.Context(), nodeOf("bj-2", w.key, "beijing")))
	wait.Until(w.t, "two Nodes", func() error { return unequal(int32(2), w.row("web", "beijing").Nodes) })
	pod := podOf("web-beijing", "bj-2", "1")
	w.createPod(pod)
	w.label("bj-2", "shanghai")
	wait.Until(w.t, "it is counted", func() error { return unequal(int32(1), w.row("web", "beijing").Misplaced) })
	w.reconciled(&v1.DeploymentGrid{}, "web")
	if p, _ := get(w, &corev1.Pod{}, pod.Name); p.DeletionTimestamp != nil {
		t.Error("evicted before the grace is over")
	}
	w.ahead.Add(int64(6 * time.Minute))
	w.reconciled(&v1.DeploymentGrid{}, "web")
	wait.Until(w.t, "it is evicted", func() error {
		if p, _ := get(w, &corev1.Pod{}, pod.Name); p.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return unequal(int32(0), w.row("web", "beijing").Misplaced)
	})
	w.stop()
	w.createPod(podOf("web-beijing", "bj-2", "2")) // which is in shanghai now
	w.createPod(podOf("web-beijing", "bj-1", "3"))
	w.start()
	wait.Until(w.t, "a controller that starts finds it", func() error { return unequal(int32(1), w.row("web", "beijing").Misplaced) })
}

// podOf is a Pod of a Deployment, as its controllers would make it. Its end is held up, to be seen.
func podOf(deployment, node, suffix string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: deployment + "-abc-" + suffix, Namespace: "default", Labels: map[string]string{"app": "web", "pod-template-hash": "abc"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: deployment + "-abc", UID: "1", Controller: &yes}},
			Finalizers:      []string{"example.com/keep"},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "echo", Image: "echo:1"}}},
	}
}

// createPod waits for what a Pod needs: there is no controller manager that would make a ServiceAccount.
func (w *world) createPod(pod *corev1.Pod) {
	w.t.Helper()
	w.must(client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}})))
	w.must(w.client.Create(w.t.Context(), pod))
}

// released: a child whose name is not wanted and whose label says that it belongs elsewhere is given up, not deleted
// (SuperEdge deleted it).
func (w *world) released() {
	t := w.t
	g, _ := get(w, &v1.DeploymentGrid{}, "web")
	child, _ := get(w, &appsv1.Deployment{}, "web-beijing")
	other := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "other", Namespace: "default", Labels: map[string]string{"a": "b"}, OwnerReferences: child.OwnerReferences,
		},
		Spec: child.Spec,
	}
	w.must(w.client.Create(t.Context(), other))
	wait.Until(w.t, "it is released", func() error {
		o, ok := get(w, &appsv1.Deployment{}, "other")
		if !ok {
			return errors.New("it was deleted")
		}
		if len(o.OwnerReferences) > 0 {
			return fmt.Errorf("it is owned by %s, as %s", o.OwnerReferences[0].UID, g.UID)
		}
		return unequal(map[string]string{"a": "b"}, o.Labels)
	})
}
