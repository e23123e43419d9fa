package gridspec

import (
	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one of the three kinds of Grid.
type Kind string

// The kinds.
const (
	DeploymentGrid  Kind = "DeploymentGrid"
	StatefulSetGrid Kind = "StatefulSetGrid"
	ServiceGrid     Kind = "ServiceGrid"
)

// Kinds returns all kinds of Grid.
func Kinds() []Kind { return []Kind{DeploymentGrid, StatefulSetGrid, ServiceGrid} }

// GroupVersionKind returns the kind as the API server has it.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return v1.GroupVersion().WithKind(string(k))
}

// Child returns the kind of a Grid's children.
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

// Spec is the spec of any of the three Grids. Its maps are shared with the object and must not be
// written.
type Spec struct {
	Kind      Kind
	Key       string            // gridUniqKey
	Template  []byte            // JSON; nil if it is absent
	Pool      map[string][]byte // by name, JSON
	Templates map[string]string // by value, a name in Pool
	Default   string            // name of the template of all other values
}

// OfWorkload returns the Spec of a DeploymentGrid or StatefulSetGrid.
func OfWorkload(k Kind, s v1.WorkloadGridSpec) Spec {
	spec := Spec{Kind: k, Key: s.GridUniqKey, Templates: s.Templates, Default: s.DefaultTemplateName}
	if s.Template != nil {
		spec.Template = s.Template.JSON
	}
	if len(s.TemplatePool) > 0 {
		spec.Pool = make(map[string][]byte, len(s.TemplatePool))
	}
	for name, t := range s.TemplatePool {
		spec.Pool[name] = t.JSON
	}
	return spec
}

// OfService returns the Spec of a ServiceGrid.
func OfService(s v1.ServiceGridSpec) Spec {
	spec := Spec{Kind: ServiceGrid, Key: s.GridUniqKey}
	if s.Template != nil {
		spec.Template = s.Template.JSON
	}
	return spec
}
