package gridspec

import (
	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grid is a Spec with the name of its Grid.
type Grid struct {
	Spec
	Namespace, Name string
	Annotations     map[string]string // shared with the object; must not be written
	// Idle reports whether nothing is done for the Grid: it is being deleted, or belongs to another
	// cluster.
	Idle bool
	// NotDistributed reports whether the Grid has that condition.
	NotDistributed bool
}

// IsDistributed reports whether a Grid has the label superedge.io/dis, with any value: it
// represents another cluster, which expands it and writes its status.
func IsDistributed(o metav1.Object) bool {
	_, found := o.GetLabels()[v1.LabelDistributed]
	return found
}

func named(s Spec, o metav1.Object, status v1.GridStatus) Grid {
	return Grid{
		Spec: s, Namespace: o.GetNamespace(), Name: o.GetName(), Annotations: o.GetAnnotations(),
		Idle:           o.GetDeletionTimestamp() != nil || IsDistributed(o),
		NotDistributed: meta.IsStatusConditionTrue(status.Conditions, v1.ConditionNotDistributed),
	}
}

// FromDeploymentGrid returns a DeploymentGrid as a Grid.
func FromDeploymentGrid(g *v1.DeploymentGrid) Grid {
	return named(OfWorkload(DeploymentGrid, g.Spec), g, g.Status.GridStatus)
}

// FromStatefulSetGrid returns a StatefulSetGrid as a Grid.
func FromStatefulSetGrid(g *v1.StatefulSetGrid) Grid {
	return named(OfWorkload(StatefulSetGrid, g.Spec), g, g.Status.GridStatus)
}

// FromServiceGrid returns a ServiceGrid as a Grid.
func FromServiceGrid(g *v1.ServiceGrid) Grid { return named(OfService(g.Spec), g, g.Status.GridStatus) }

// ReadGrid returns the Grid of kind k. decode gets a pointer to the Go type of that kind; its
// error is returned.
func ReadGrid(k Kind, decode func(into any) error) (Grid, error) {
	switch k {
	case DeploymentGrid:
		return read(decode, FromDeploymentGrid)
	case StatefulSetGrid:
		return read(decode, FromStatefulSetGrid)
	default:
		return read(decode, FromServiceGrid)
	}
}

func read[T any](decode func(into any) error, from func(*T) Grid) (Grid, error) {
	g := new(T)
	err := decode(g)
	return from(g), err
}
