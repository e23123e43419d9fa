package grid

import (
	"context"
	"maps"
	"time"

	"gridproxy/controller/grid/expand"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// fieldOwners say who owned which fields of a child before a repair.
type fieldOwners struct {
	ours   string // fieldsV1
	others []expand.Owner
}

// owners reads the owners of a child's fields live, since the cache has only ours. It returns
// nil if the child is not contested, or cannot be read: a repair does not wait for the name of
// the rival.
func (e *execution) owners(ctx context.Context, s expand.Apply) *fieldOwners {
	if !s.Contested || s.UID == "" {
		return nil
	}
	o := e.metadata()
	err := e.live.Get(ctx, types.NamespacedName{Namespace: e.observed.Grid.Namespace, Name: s.Child.Name}, o)
	if err != nil || o.GetUID() != s.UID {
		return nil
	}
	found := &fieldOwners{ours: owned(o.GetManagedFields())}
	for _, m := range o.GetManagedFields() {
		if m.FieldsV1 != nil && m.Subresource == "" && m.Manager != Manager {
			found.others = append(found.others, expand.Owner{Manager: m.Manager, Owned: m.FieldsV1.GetRawString()})
		}
	}
	return found
}

// repaired records a repair, and no other apply, with e.mu held. before is what owners returned
// before it. after is what we own after it, "" if other clients wrote the child each time.
func (e *execution) repaired(ctx context.Context, s expand.Apply, before *fieldOwners, after string) {
	if !s.Repair {
		return
	}
	rivals := ""
	switch {
	case s.Contested && s.UID == "":
		rivals = "it was deleted"
	case before != nil && after != "":
		rivals = expand.Rivals(before.others, before.ours, after)
	}
	now := e.known.repairs[s.Child.Name].After(e.now(), rivals)
	e.known.repairs[s.Child.Name] = now
	if now.Contested > 0 {
		log.FromContext(ctx).Info("another client keeps changing a child", "child", s.Child.Name, "unit", s.Child.Value,
			"who", now.Rivals, "repairs", now.Contested)
	}
}

// recentRepairs returns the repairs of children by name, and forgets those that say nothing
// about the present any more.
func (r *remembered) recentRepairs(now time.Time) map[string]expand.Repairs {
	maps.DeleteFunc(r.repairs, func(_ string, of expand.Repairs) bool { return of.Over(now) })
	return r.repairs
}
