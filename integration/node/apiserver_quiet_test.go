package node

import (
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHeartbeatsAreSilent: a kubelet writes its Node's status every few minutes, and in a cluster
// of many nodes that never stops. It changes nothing that a Snapshot holds, so no consumer wakes
// up.
//
// Events of one kind arrive in order, so once the two markers are seen, whatever the heartbeats would
// have caused has been caused.
func TestHeartbeatsAreSilent(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.fill(3)
	other := w.load.nodes[1]
	for _, name := range []string{self, other} { // of one unit, so that both are watched
		w.setLocation(name, "beijing")
	}
	w.closeService("closed", `["location"]`)
	w.watch()
	w.settle()
	before := w.signals.Load()
	for i := range 20 {
		w.heartbeat(self, i)
		w.heartbeat(other, i)
	}
	w.taint(self)
	w.setLocation(other, "shanghai")
	w.settle()
	wait.Until(w.t, "the markers signal", func() error { return wait.Check(w.signals.Load() != before, "no signal for a taint and a label") })
	// A Snapshot may show what is signalled a moment later, so a few signals may still belong to the
	// objects of before. The heartbeats would be 40 more.
	if got := w.signals.Load() - before; got >= 20 {
		t.Errorf("%d signals for two changes that matter and 40 heartbeats", got)
	}
}

func (w *watchedCluster) heartbeat(node string, n int) {
	w.t.Helper()
	object, err := w.api.CoreV1().Nodes().Get(w.ctx, node, metav1.GetOptions{})
	must(w.t, err)
	object.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: metav1.NewTime(time.Unix(int64(n), 0)),
	}}
	_, err = w.api.CoreV1().Nodes().UpdateStatus(w.ctx, object, metav1.UpdateOptions{})
	must(w.t, err)
}

func (w *watchedCluster) taint(node string) {
	w.t.Helper()
	object, err := w.api.CoreV1().Nodes().Get(w.ctx, node, metav1.GetOptions{})
	must(w.t, err)
	object.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
	_, err = w.api.CoreV1().Nodes().Update(w.ctx, object, metav1.UpdateOptions{})
	must(w.t, err)
}

func (w *watchedCluster) setLocation(node, value string) {
	w.t.Helper()
	object, err := w.api.CoreV1().Nodes().Get(w.ctx, node, metav1.GetOptions{})
	must(w.t, err)
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels["location"] = value
	_, err = w.api.CoreV1().Nodes().Update(w.ctx, object, metav1.UpdateOptions{})
	must(w.t, err)
}

// closeService makes a Service with these topology keys.
func (w *watchedCluster) closeService(name, keys string) {
	w.t.Helper()
	_, err := w.api.CoreV1().Services("default").Create(w.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"topologyKeys": keys}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(w.t, err)
}
