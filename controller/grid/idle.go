package grid

import (
	"context"
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tellIdle writes the condition of a Grid that another cluster expands, by server-side apply: the
// other conditions, and the rest of the status, are not ours.
func (r *reconciler) tellIdle(ctx context.Context, o client.Object) error {
	g := r.kind.read(o)
	condition := expand.IdleCondition(g, r.kind.common(r.kind.written(o)).Conditions, r.now())
	if condition == nil {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1.GridStatus{Conditions: []metav1.Condition{*condition}})
	if err != nil {
		return fmt.Errorf("encoding why %s %s/%s is idle: %w", g.Kind, g.Namespace, g.Name, err)
	}
	idle := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	idle.SetGroupVersionKind(v1.GroupVersion().WithKind(string(g.Kind)))
	idle.SetNamespace(g.Namespace)
	idle.SetName(g.Name)
	idle.SetUID(g.UID)
	err = r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(idle), client.FieldOwner(Manager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing why %s %s/%s is idle: %w", g.Kind, g.Namespace, g.Name, err)
	}
	return nil
}
