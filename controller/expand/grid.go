package expand

import (
	"fmt"
	"strings"

	"gridproxy/topology"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Kind is one of the three kinds of Grid.
type Kind string

// The kinds.
const (
	DeploymentGrid  Kind = "DeploymentGrid"
	StatefulSetGrid Kind = "StatefulSetGrid"
	ServiceGrid     Kind = "ServiceGrid"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{DeploymentGrid, StatefulSetGrid, ServiceGrid} }

// GroupVersionKind is the kind as the API server has it.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return v1.GroupVersion().WithKind(string(k))
}

// Child is the kind of a Grid's children.
func (k Kind) Child() schema.GroupVersionKind {
	switch k {
	case DeploymentGrid:
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	case StatefulSetGrid:
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	default:
		return schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	}
}

// Grid is any of the three Grids, as this package reads it. Made by FromDeploymentGrid,
// FromStatefulSetGrid, FromServiceGrid; its maps are shared with the object and must not be
// written.
type Grid struct {
	Kind        Kind
	Namespace   string
	Name        string
	UID         types.UID
	Generation  int64
	Deleting    bool
	Distributed bool // it represents another cluster (superedge.io/dis), which expands it and writes its status
	Labels      map[string]string
	Annotations map[string]string

	Key       string            // gridUniqKey
	Template  []byte            // JSON; nil if there is none
	Pool      map[string][]byte // by name, JSON
	Templates map[string]string // by value, a name in Pool
	Default   string            // name of the template of all other values
	AutoPrune bool              // autoDeleteUnusedTemplate
}

// ReadGrid is the Grid of a kind that decode reads into the Go type of that kind.
func ReadGrid(k Kind, decode func(into any) error) (Grid, error) {
	switch k {
	case DeploymentGrid:
		g := &v1.DeploymentGrid{}
		err := decode(g)
		return FromDeploymentGrid(g), err
	case StatefulSetGrid:
		g := &v1.StatefulSetGrid{}
		err := decode(g)
		return FromStatefulSetGrid(g), err
	default:
		g := &v1.ServiceGrid{}
		err := decode(g)
		return FromServiceGrid(g), err
	}
}

// FromDeploymentGrid is the Grid in a DeploymentGrid.
func FromDeploymentGrid(g *v1.DeploymentGrid) Grid { return fromWorkload(DeploymentGrid, g, g.Spec) }

// FromStatefulSetGrid is the Grid in a StatefulSetGrid.
func FromStatefulSetGrid(g *v1.StatefulSetGrid) Grid {
	return fromWorkload(StatefulSetGrid, g, g.Spec)
}

// FromServiceGrid is the Grid in a ServiceGrid.
func FromServiceGrid(g *v1.ServiceGrid) Grid {
	grid := fromObject(ServiceGrid, g)
	grid.Key = g.Spec.GridUniqKey
	if g.Spec.Template != nil {
		grid.Template = g.Spec.Template.JSON
	}
	return grid
}

func fromWorkload(k Kind, o metav1.Object, s v1.WorkloadGridSpec) Grid {
	g := fromObject(k, o)
	g.Key, g.Templates, g.Default, g.AutoPrune = s.GridUniqKey, s.Templates, s.DefaultTemplateName, s.AutoDeleteUnusedTemplate
	if s.Template != nil {
		g.Template = s.Template.JSON
	}
	if len(s.TemplatePool) > 0 {
		g.Pool = make(map[string][]byte, len(s.TemplatePool))
	}
	for name, t := range s.TemplatePool {
		g.Pool[name] = t.JSON
	}
	return g
}

func fromObject(k Kind, o metav1.Object) Grid {
	_, distributed := o.GetLabels()[v1.LabelDistributed]
	return Grid{
		Kind: k, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Generation: o.GetGeneration(),
		Deleting: o.GetDeletionTimestamp() != nil, Distributed: distributed,
		Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
	}
}

// Idle reports whether nothing is done for the Grid and nothing reported: its children belong to
// garbage collection or to another cluster.
func (g Grid) Idle() bool { return g.Deleting || g.Distributed }

// childName is the name of its child in the unit with the value; a ServiceGrid's does not depend on
// it.
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

// keyMistake is what is wrong with its key. Without a valid key it has no units, and nothing is
// done. The reason of a missing key is SuperEdge's.
func (g Grid) keyMistake() *Mistake {
	switch {
	case g.Key == "":
		wrong, remedy, _ := strings.Cut(v1.MessageKeyMissing, ": ")
		return &Mistake{ReasonEmpty, wrong, remedy}
	case len(content.IsLabelKey(g.Key)) > 0:
		return &Mistake{ReasonInvalidKey, fmt.Sprintf("spec.gridUniqKey is %q", g.Key), v1.MessageKeyInvalid}
	}
	return nil
}
