package site

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeMemory: a Node is read again when its version or its object is another one, and forgotten
// when it is gone.
func TestNodeMemory(t *testing.T) {
	m := newNodeMemory()
	for _, step := range []struct{ version, label, want string }{
		{"1", "first", "first"},
		{"1", "not read", "first"},
		{"2", "second", "second"},
	} {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: step.version, Labels: map[string]string{"x": step.label}}}
		if got := m.readAll([]corev1.Node{n}); len(got) != 1 || got[0].Labels["x"] != step.want {
			t.Errorf("version %s: got %v, want the label %s", step.version, got, step.want)
		}
	}
	m.readAll(nil)
	if len(m.read) > 0 {
		t.Errorf("a Node that is gone is remembered: %v", m.read)
	}
}
