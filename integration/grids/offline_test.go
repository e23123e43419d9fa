package grids

import (
	"fmt"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestOffline: a site that is switched off keeps no one waiting, a change made meanwhile waits for
// it without an alert, and the Node that comes back is what wakes the Grid. A heartbeat starts
// nothing.
func TestOffline(t *testing.T) {
	w := newWorld(t, map[string]string{"bj-1": "beijing", "bj-2": "beijing", "gz-1": "guangzhou"})
	w.apply(deploymentGrid("web", "replicas: 0"))
	wait.Until(w.t, "both units are Ready", func() error { w.finishRollouts("web"); return w.wantRate("2/2") })
	w.run("the only Node of a unit is not ready", (*world).goesOffline)
	w.run("a change waits", (*world).changesOffline)
	w.run("a heartbeat", (*world).heartbeat)
	w.run("the Node is ready again", (*world).comesBack)
	w.run("all units are offline", (*world).allOffline)
}

// setReady has a Node report whether it is ready, as its kubelet or the node lifecycle controller
// does.
func (w *world) setReady(node string, is corev1.ConditionStatus) {
	w.t.Helper()
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"lastHeartbeatTime":%q}]}}`, is, metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	must(w.t, w.client.Status().Patch(w.t.Context(), o, client.RawPatch(types.StrategicMergePatchType, patch)))
}

func (w *world) wantRate(want string) error {
	g, _ := get(w, &v1.DeploymentGrid{}, "web")
	return wait.Check(g.Status.ReadyRate == want, "ready %s: %+v", g.Status.ReadyRate, g.Status.Units)
}

func (w *world) wantCondition(of string, status metav1.ConditionStatus, reason, text string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("%s is %s %s", of, status, reason), func() error {
		g, _ := get(w, &v1.DeploymentGrid{}, "web")
		return checkCondition(g.Status.Conditions, of, status, reason, text)
	})
}

func (w *world) goesOffline() {
	w.setReady("bj-1", "False") // of two
	w.setReady("gz-1", "Unknown")
	w.expectRow("web", "guangzhou", v1.UnitOffline, "NodesNotReady")
	w.wantCondition(v1.ConditionReady, "True", "UnitsReady", "1 unit offline: guangzhou")
	if row := w.row("web", "beijing"); row.Phase != v1.UnitReady {
		w.t.Errorf("a unit with a ready Node: %+v", row)
	}
	fields := strings.Fields(w.kubectl("", "get", "dg", "web", "--no-headers"))
	if len(fields) != 6 || strings.Join(fields[1:5], " ") != "location 2 1/2 1" {
		w.t.Errorf("kubectl get dg prints %q", fields)
	}
}

func (w *world) changesOffline() {
	w.apply(deploymentGrid("web", "{replicas: 0, minReadySeconds: 7}"))
	for _, child := range []string{"web-guangzhou", "web-beijing"} {
		wait.Until(w.t, "the change is made in "+child, func() error {
			d, _ := get(w, &appsv1.Deployment{}, child)
			return wait.Check(d.Spec.MinReadySeconds == 7, "it is not")
		})
	}
	w.settled(&v1.DeploymentGrid{}, "web") // no row is from before the change
	wait.Until(w.t, "the unit that can be reached is ready", func() error {
		d, _ := get(w, &appsv1.Deployment{}, "web-beijing")
		w.finishRollout(d)
		return w.wantRate("1/2")
	})
	d, _ := get(w, &appsv1.Deployment{}, "web-guangzhou")
	d.Status.ObservedGeneration = d.Generation
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "False", Reason: "ProgressDeadlineExceeded", Message: "no Pod"}}
	must(w.t, w.client.Status().Update(w.t.Context(), d))
	wait.Until(w.t, "the row says what waits", func() error {
		row := w.row("web", "guangzhou")
		return wait.Check(row.Phase == v1.UnitOffline && strings.Contains(row.Message, "is stuck: no Pod"), "%+v", row)
	})
	w.wantCondition(v1.ConditionReady, "True", "UnitsReady", "1 unit offline: guangzhou")
	w.wantCondition(v1.ConditionProgressing, "False", "UnitsStable", "")
	w.wantCondition(v1.ConditionDegraded, "False", "AsExpected", "")
	expectEvents(w.t, w.client, "web", "Stalled", 0)
	d.Status.Conditions = nil
	must(w.t, w.client.Status().Update(w.t.Context(), d))
	wait.Until(w.t, "the row has followed", func() error {
		row := w.row("web", "guangzhou")
		return wait.Check(!strings.Contains(row.Message, "is stuck"), "%s", row.Message)
	})
}

// heartbeat: what a Node says of itself again, and again that it is not ready, changes nothing but
// the generation that the status is about. A status is written twice where the controller has not
// yet seen the first time.
func (w *world) heartbeat() {
	w.reconciled(&v1.DeploymentGrid{}, "web") // what went before is over
	before, _ := get(w, &v1.DeploymentGrid{}, "web")
	done := len(w.count.Requests(nodes.Request.Write))
	w.setReady("gz-1", "False")
	w.setReady("bj-2", "True")
	w.reconciled(&v1.DeploymentGrid{}, "web")
	after, _ := get(w, &v1.DeploymentGrid{}, "web")
	if diff := cmp.Diff(before.Status, after.Status, ignoreGeneration()); diff != "" {
		w.t.Errorf("the status differs (-before +after):\n%s", diff)
	}
	for _, r := range w.count.Requests(nodes.Request.Write)[done:] {
		if r.Subresource != "status" || r.Name != "web" {
			w.t.Errorf("a write: %s", r)
		}
	}
	w.expectRow("web", "guangzhou", v1.UnitOffline, "")
}

func ignoreGeneration() cmp.Option {
	return cmp.Options{cmpopts.IgnoreFields(v1.GridStatus{}, "ObservedGeneration"), cmpopts.IgnoreFields(metav1.Condition{}, "ObservedGeneration")}
}

func (w *world) comesBack() {
	w.setReady("gz-1", "True")
	wait.Until(w.t, "both units are Ready", func() error { return w.wantRate("2/2") })
	w.wantCondition(v1.ConditionReady, "True", "UnitsReady", "all 2 units with Nodes are ready")
}

func (w *world) allOffline() {
	for _, node := range []string{"bj-1", "bj-2", "gz-1"} {
		w.setReady(node, "False")
	}
	w.wantCondition(v1.ConditionReady, "Unknown", "AllOffline", "2 units offline: beijing, guangzhou")
	must(w.t, w.client.Delete(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gz-1"}}))
	w.expectRow("web", "guangzhou", v1.UnitLost, "")
	w.wantCondition(v1.ConditionReady, "Unknown", "AllOffline", "1 unit offline: beijing")
}
