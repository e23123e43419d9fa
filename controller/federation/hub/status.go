package hub

import (
	"context"
	"slices"

	"gridproxy/controller/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// report writes the status of a FleetCluster if it differs; t.failed: it could not. While
// another attempt to write a bundle may succeed, it requests that instead, and sets t.failed.
func (e *execution) report(ctx context.Context, t *target) error {
	for _, why := range t.unsent {
		if why == nil {
			t.failed = true
			e.again.Store(true)
			return nil
		}
	}
	status := withUnsent(t.plan.Status, t.unsent)
	if equality.Semantic.DeepEqual(status, t.observed.Object.Status) {
		return nil
	}
	wanted := t.object.DeepCopy()
	wanted.Status = status
	err := e.client.Status().Update(ctx, wanted, client.FieldOwner(Manager))
	e.metrics.wrote(kindCluster, err)
	if err == nil {
		t.object = wanted
		e.written.tell(wanted, e.now())
		return nil
	}
	t.failed = true
	return e.tolerate(err, "writing the status of FleetCluster %s", t.plan.Name)
}

// withUnsent returns a status that says of the Grids in some bundles why these were not sent.
func withUnsent(s v1alpha1.FleetClusterStatus, why map[string]*v1alpha1.Problem) v1alpha1.FleetClusterStatus {
	if len(why) == 0 {
		return s
	}
	s.Grids = slices.Clone(s.Grids)
	for i, g := range s.Grids {
		if p := why[g.Namespace]; p != nil {
			s.Grids[i].State, s.Grids[i].Message = p.Reason, p.Message
		}
	}
	return s
}
