package expand

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Grid is any of the three Grids, as this package reads it. Made by FromDeploymentGrid, FromStatefulSetGrid,
// FromServiceGrid; its maps are shared with the object and must not be written.
type Grid struct {
	Kind        Kind
	Namespace   string
	Name        string
	UID         types.UID
	Generation  int64
	Labels      map[string]string
	Annotations map[string]string

	Key       string            // gridUniqKey
	Template  []byte            // JSON; nil if there is none
	Pool      map[string][]byte // by name, JSON
	Templates map[string]string // by value, a name in Pool
	Default   string            // name of the template of all other values
	AutoPrune bool              // autoDeleteUnusedTemplate
}

// Problem is why a unit does not have what its Grid asks for.
type Problem struct {
	Reason  string // a word for programs
	Message string // what is wrong, where, and what to do
}

// Child is what a Grid wants in one unit. A ServiceGrid has one, with an empty Value.
type Child struct {
	Value    string
	Name     string
	Template string // the name of the template, DefaultTemplate for spec.template
	// Object is what to apply, complete but for metadata.uid; nil if there is a Problem.
	Object  *unstructured.Unstructured
	Problem *Problem
}
