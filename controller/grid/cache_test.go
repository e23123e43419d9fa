package grid

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodesInTheCacheAreSmall: of a Node its name, its labels and its readiness are kept. A
// heartbeat changes nothing of these.
func TestNodesInTheCacheAreSmall(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"large": large}},
		Spec:       corev1.NodeSpec{ProviderID: large},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: large},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: large, LastHeartbeatTime: metav1.Now()},
			},
			Images: []corev1.ContainerImage{{Names: []string{large}}},
		},
	}
	trimmed, err := trim(n)
	if err != nil {
		t.Fatal(err)
	}
	kept := trimmed.(*corev1.Node)
	text, err := json.Marshal(kept)
	if err != nil || len(text) > 700 {
		t.Errorf("%d bytes are kept, %v: %.1000s", len(text), err, text)
	}
	if kept.Labels["zone"] != "a" || !isReady(kept) || !kept.Status.Conditions[0].LastHeartbeatTime.IsZero() {
		t.Errorf("kept: %s", text)
	}
}
