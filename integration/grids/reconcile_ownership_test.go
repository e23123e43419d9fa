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

func nodeOf(name, key, unit string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: unit}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// TestOwnership: whose child an object is, and when it goes.
func TestOwnership(t *testing.T) {
	w := newWorld(t, map[string]string{"bj-1": "beijing", "gz-1": "guangzhou", "sh-1": "shanghai"})
	w.run("an object that comes while the child is made", (*world).raced)
	w.run("adoption after an orphan delete", (*world).adoption)
	w.run("a misplaced Pod", (*world).strayPod)
	w.run("an unwanted child is released", (*world).released)
}

// raced: another client makes an object of the name after the controller has found it free, and
// before it applies.
func (w *world) raced() {
	var once sync.Once
	stands := ""
	before := func(r *http.Request) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/raced-beijing") {
			once.Do(func() {
				w.apply(strings.ReplaceAll(strings.Split(theirs, "---")[0], "grid-unit-00", "raced-beijing"))
				stands = w.raw(&appsv1.Deployment{}, "raced-beijing")
			})
		}
	}
	w.before.Store(&before)
	defer w.before.Store(nil)
	w.apply(deploymentGrid("raced", ""))
	w.expectRow("raced", "beijing", v1.UnitFailed, "NameCollision")
	if diff := cmp.Diff(stands, w.raw(&appsv1.Deployment{}, "raced-beijing")); diff != "" {
		w.t.Errorf("(-made +now)\n%s", diff)
	}
	w.kubectl("", "delete", "deployment", "raced-beijing", "--cascade=background")
	w.expectRow("raced", "beijing", v1.UnitProgressing, "") // which the end of the collision causes
	w.kubectl("", "delete", "dg", "raced")
	w.kubectl("", "delete", "deployment", "--all", "--cascade=background")
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

// strayPod: a Pod on a Node that has left its unit is counted at once, and evicted after the grace.
func (w *world) strayPod() {
	t := w.t
	must(w.t, w.client.Create(t.Context(), nodeOf("bj-2", w.key, "beijing")))
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
	account := &corev1.ServiceAccount{ObjectMeta: inDefault("default")}
	must(w.t, client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), account)))
	must(w.t, w.client.Create(w.t.Context(), pod))
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
	must(w.t, w.client.Create(t.Context(), other))
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
