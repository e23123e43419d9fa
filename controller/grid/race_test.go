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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contested is an API server that finds every child changed.
type contested struct {
	cached
	applies *int
}

// Apply answers 409.
func (c contested) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	*c.applies++
	return apierrors.NewConflict(schema.GroupResource{Group: "apps", Resource: "deployments"}, "foo-a", errors.New("it was modified"))
}

// contest is an execution in which every apply of the child of Grid "1" is lost, and a step that
// applies it. stands is the child as a live read returns it.
func contest(stands metav1.ObjectMeta, s expand.Apply) (*execution, expand.Step, *int) {
	e := executionOn(&server{child: &appsv1.Deployment{ObjectMeta: stands}})
	applies := new(int)
	e.client = contested{e.client.(cached), applies}
	setChild(e.observed, expand.Live{Name: "foo-a", UID: "9", ResourceVersion: "5", Owner: "1"})
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "foo-a"}}}
	o.SetGroupVersionKind(expand.DeploymentGrid.Child())
	s.Child, s.UID = expand.Child{Name: "foo-a", Object: o}, "9"
	return e, s, applies
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
	e, step, applies := contest(standing("9", "1"), expand.Apply{})
	var total time.Duration
	for range 20 {
		e.outrun, *applies = false, 0
		if err := e.run(t.Context(), []expand.Step{step, step}); err != nil || !e.outrun || *applies != 2*attempts {
			t.Fatalf("outrun %t after %d attempts, %v", e.outrun, *applies, err)
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
		e, step, applies := contest(stands, expand.Apply{})
		if err := e.run(t.Context(), []expand.Step{step}); err != nil || !e.outrun || *applies != 1 {
			t.Errorf("%s: outrun %t after %d attempts, %v", what, e.outrun, *applies, err)
		}
	}
	e, step, applies := contest(standing("9", "1"), expand.Apply{Adopt: true})
	e.live.(*server).grid = e.client.(contested).grid
	if err := e.run(t.Context(), []expand.Step{step}); err != nil || !e.outrun || *applies != 1 {
		t.Errorf("to adopt: outrun %t after %d attempts, %v", e.outrun, *applies, err)
	}
}
