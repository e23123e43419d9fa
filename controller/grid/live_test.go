package grid

import (
	"slices"
	"testing"

	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
)

// TestCompleted: a Deployment whose rollout was complete once had ready Pods, also if it has none
// now.
func TestCompleted(t *testing.T) {
	for reason, want := range map[string]bool{"NewReplicaSetAvailable": true, progressDeadline: false, "ReplicaSetUpdated": false} {
		d := &appsv1.Deployment{}
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable}, {Type: appsv1.DeploymentProgressing, Reason: reason}}
		l, err := live(d)
		if err != nil || l.Completed != want {
			t.Errorf("%s: completed is %v, want %v; %v", reason, l.Completed, want, err)
		}
	}
}

// TestUnservedNeedsNoPlace: the child of a unit that never served is deleted without a Spend
// before.
func TestUnservedNeedsNoPlace(t *testing.T) {
	e, w, steps := rollout(1)
	steps = append(steps, expand.Delete{Name: "foo-99", Value: "99", UID: "9", ResourceVersion: "5", Unserved: true})
	if err := e.run(t.Context(), steps); err != nil || !slices.Contains(w.ended, "delete") || e.removed != 0 {
		t.Errorf("%d places are taken by %v: %v", e.removed, w.ended, err)
	}
}

// TestPausedChild: what kubectl rollout pause writes is read.
func TestPausedChild(t *testing.T) {
	if l, err := live(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}}); err != nil || !l.Paused {
		t.Errorf("paused is %v: %v", l.Paused, err)
	}
}
