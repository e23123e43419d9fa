package grid

import (
	"context"
	"errors"
	"testing"
	"time"

	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// contest is an execution in which every apply of the child of Grid "1" is lost, and a step that
// applies it. stands is the child as a live read returns it.
func contest(stands metav1.ObjectMeta, s expand.Apply) (*execution, *writing, expand.Step) {
	e := executionOn(&server{child: &appsv1.Deployment{ObjectMeta: stands}})
	w := &writing{cached: e.client.(cached), apply: func(_ context.Context, name string) error {
		return apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, name, errors.New("it was modified"))
	}}
	e.client = w
	setChild(e.observed, expand.Live{Name: "foo-a", UID: "9", ResourceVersion: "5", Owner: "1"})
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "foo-a"}}}
	o.SetGroupVersionKind(expand.DeploymentGrid.Child())
	s.Child, s.UID = expand.Child{Name: "foo-a", Object: o}, "9"
	return e, w, s
}

func standing(uid, owner types.UID) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: "foo-a", UID: uid, ResourceVersion: "6",
		OwnerReferences: []metav1.OwnerReference{{Kind: "DeploymentGrid", Name: "foo", UID: owner, Controller: &yes}},
	}
}

// TestLostRacesAreRunAgainEverLater: also if a webhook always answers 409.
func TestLostRacesAreRunAgainEverLater(t *testing.T) {
	e, w, step := contest(standing("9", "1"), expand.Apply{})
	var total time.Duration
	for range 20 {
		e.outrun, w.ended = false, nil
		if err := e.run(t.Context(), []expand.Step{step, step}); err != nil || !e.outrun || w.done() != 2*attempts {
			t.Fatalf("outrun %t after %d attempts, %v", e.outrun, w.done(), err)
		}
		pause := e.known.afterRace(e.outrun)
		if pause <= 0 || pause > retryDelayMax {
			t.Errorf("a pause of %s", pause)
		}
		total += pause
	}
	if total < 5*retryDelayMax {
		t.Errorf("20 turns in %s", total)
	}
	if e.known.afterRace(false) != 0 || e.known.afterRace(true) != conflictDelay {
		t.Error("a race that was won does not end it")
	}
}

// TestOnlyTheGridsOwnChildIsRacedFor: a child that lost its controller or got another one in the
// meantime is left unchanged. A child without a controller is not adopted because of an old check.
func TestOnlyTheGridsOwnChildIsRacedFor(t *testing.T) {
	going := standing("9", "1")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	orphan := standing("9", "1")
	orphan.OwnerReferences = nil
	for what, stands := range map[string]metav1.ObjectMeta{
		"another child": standing("10", "1"), "another owner's": standing("9", "2"), "an orphan": orphan, "going": going,
	} {
		e, w, step := contest(stands, expand.Apply{})
		if err := e.run(t.Context(), []expand.Step{step}); err != nil || !e.outrun || w.done() != 1 {
			t.Errorf("%s: outrun %t after %d attempts, %v", what, e.outrun, w.done(), err)
		}
	}
	e, w, step := contest(standing("9", "1"), expand.Apply{Adopt: true})
	e.live.(*server).grid = w.grid
	if err := e.run(t.Context(), []expand.Step{step}); err != nil || !e.outrun || w.done() != 1 {
		t.Errorf("to adopt: outrun %t after %d attempts, %v", e.outrun, w.done(), err)
	}
}
