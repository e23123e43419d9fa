package grid

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"gridproxy/controller/grid/expand"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// accept answers an apply with the child as it is afterwards: we own the replicas then.
func accept(o runtime.ApplyConfiguration) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	answer := &unstructured.Unstructured{}
	if err := answer.UnmarshalJSON(text); err != nil {
		return err
	}
	answer.SetUID("9")
	answer.SetResourceVersion("7")
	answer.SetManagedFields([]metav1.ManagedFieldsEntry{fields(Manager, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:replicas":{}}}`)})
	raw, err := answer.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, o)
	}
	return err
}

func fields(manager string, operation metav1.ManagedFieldsOperationType, owned string) metav1.ManagedFieldsEntry {
	set := &metav1.FieldsV1{}
	set.SetRawBytes([]byte(owned))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsType: "FieldsV1", FieldsV1: set}
}

// TestRivalIsNamed: before the repair of a contested child it is read live, once, to name who took
// which field; before other applies it is not.
func TestRivalIsNamed(t *testing.T) {
	now := time.Unix(0, 0)
	history := expand.Repairs{}
	for range 5 {
		history = history.After(now, "")
	}
	for _, test := range []struct {
		name      string
		step      expand.Apply
		before    expand.Repairs
		contested int
		gets      int
		rivals    string
	}{
		{"what the Grid newly asks for", expand.Apply{}, history, 0, 0, ""},
		{"a repair", expand.Apply{Repair: true}, expand.Repairs{}, 0, 0, ""},
		{"the sixth in a minute", expand.Apply{Repair: true, Contested: true}, history, 1, 1, "helm took .spec.replicas"},
	} {
		t.Run(test.name, func(t *testing.T) {
			stands := standing("9", "1")
			stands.ManagedFields = []metav1.ManagedFieldsEntry{
				fields("helm", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:replicas":{},"f:paused":{}}}`),
			}
			e, w, step := contest(stands, test.step)
			w.apply, e.now = func(context.Context, string) error { return nil }, func() time.Time { return now }
			e.known.repairs["foo-a"] = test.before
			if err := e.run(t.Context(), []expand.Step{step}); err != nil {
				t.Fatal(err)
			}
			got := e.known.repairs["foo-a"]
			if got.Contested != test.contested || got.Rivals != test.rivals || e.live.(*server).gets != test.gets {
				t.Errorf("contested %d by %q after %d reads", got.Contested, got.Rivals, e.live.(*server).gets)
			}
		})
	}
}

// TestLostRaceCountsAsRepair: a rival that is always faster is written as rarely as another one.
func TestLostRaceCountsAsRepair(t *testing.T) {
	e, _, step := contest(standing("9", "1"), expand.Apply{Repair: true})
	e.now = time.Now
	if err := e.run(t.Context(), []expand.Step{step}); err != nil || len(e.known.repairs["foo-a"].Recent) != 1 {
		t.Errorf("repairs %+v, %v", e.known.repairs, err)
	}
	if left := e.known.recentRepairs(time.Now().Add(time.Hour)); len(left) != 0 {
		t.Errorf("never forgotten: %v", left)
	}
}
