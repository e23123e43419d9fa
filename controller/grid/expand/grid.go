package expand

import (
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is one of the three kinds of Grid.
type Kind = gridspec.Kind

// The kinds.
const (
	DeploymentGrid  = gridspec.DeploymentGrid
	StatefulSetGrid = gridspec.StatefulSetGrid
	ServiceGrid     = gridspec.ServiceGrid
)

// Grid is any of the three Grids, as this package reads it. Made by FromDeploymentGrid,
// FromStatefulSetGrid, FromServiceGrid; its maps are shared with the object and must not be
// written.
type Grid struct {
	gridspec.Spec
	Namespace   string
	Name        string
	UID         types.UID
	Generation  int64
	Deleting    bool
	Distributed bool // it represents another cluster (superedge.io/dis), which expands it and writes its status
	AutoPrune   bool // autoDeleteUnusedTemplate
	Labels      map[string]string
	Annotations map[string]string
}

// FromDeploymentGrid returns a DeploymentGrid as a Grid.
func FromDeploymentGrid(g *v1.DeploymentGrid) Grid { return fromWorkload(DeploymentGrid, g, g.Spec) }

// FromStatefulSetGrid returns a StatefulSetGrid as a Grid.
func FromStatefulSetGrid(g *v1.StatefulSetGrid) Grid {
	return fromWorkload(StatefulSetGrid, g, g.Spec)
}

// FromServiceGrid returns a ServiceGrid as a Grid.
func FromServiceGrid(g *v1.ServiceGrid) Grid { return fromObject(g, gridspec.OfService(g.Spec)) }

func fromWorkload(k Kind, o metav1.Object, s v1.WorkloadGridSpec) Grid {
	g := fromObject(o, gridspec.OfWorkload(k, s))
	g.AutoPrune = s.AutoDeleteUnusedTemplate
	return g
}

func fromObject(o metav1.Object, s gridspec.Spec) Grid {
	return Grid{
		Spec: s, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration(),
		Deleting: o.GetDeletionTimestamp() != nil, Distributed: gridspec.IsDistributed(o),
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
	}
}

// Idle reports whether nothing is done for the Grid and nothing reported: its children belong to
// garbage collection or to another cluster.
func (g Grid) Idle() bool { return g.Deleting || g.Distributed }

// childName returns the name of the Grid's child in the unit with the value. The name of a
// ServiceGrid's child does not depend on it.
func (g Grid) childName(value string) string {
	switch g.Kind {
	case DeploymentGrid:
		return topology.DeploymentName(g.Name, value)
	case StatefulSetGrid:
		return topology.StatefulSetName(g.Name, value)
	default:
		return topology.ServiceName(g.Name)
	}
}
