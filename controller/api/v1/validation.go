package v1

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What the API server says for the CRDs' rules, and Validate for the same faults. The markers
// repeat these texts, since a marker cannot name a constant; a test compares them.
const (
	MessageKeyMissing = "spec.gridUniqKey is missing: set it to the label key whose values on Nodes form the units, for example location"
	MessageKeyInvalid = "gridUniqKey must be a label key: a name of at most 63 letters, digits, '-', '_' and '.', " +
		"beginning and ending with a letter or digit, which a DNS name of at most 253 characters and '/' may precede, for example location"
	MessageReplicas = "replicas must be 0 or more; leave it out so that the children can be scaled, starting at 1"
)

// What the API server says when a Grid is created with a template that lacks what its child needs,
// as with the spec of another kind. Validate does not say it: Grids may be stored so, and the units
// have it as InvalidTemplate.
const (
	MessageDeployment = "spec.template must be the spec of a Deployment, with selector and template: write them there, " +
		"or in the template of templatePool that defaultTemplateName names; a spec with ports belongs in a ServiceGrid"
	MessageStatefulSet = "spec.template must be the spec of a StatefulSet, with selector, serviceName and template: write them there, " +
		"or in the template of templatePool that defaultTemplateName names; a spec with ports belongs in a ServiceGrid"
	MessageService = "spec.template must be the spec of a Service, with ports, unless clusterIP is None or type is ExternalName: write them there; " +
		"a spec with a Pod template belongs in a DeploymentGrid or StatefulSetGrid"
)

// Validate returns what is wrong with the Grid, sorted by field; nil if it is valid. It checks
// the rules of the CRD, for Grids that were stored before there were rules or that no API
// server has seen. An entry of templates that names nothing in templatePool is not an error
// here, because it concerns its unit alone.
func (g *DeploymentGrid) Validate() field.ErrorList { return g.Spec.validate() }

// Validate returns what is wrong with the Grid, as DeploymentGrid's does.
func (g *StatefulSetGrid) Validate() field.ErrorList { return g.Spec.validate() }

// Validate returns what is wrong with the Grid, as DeploymentGrid's does.
func (g *ServiceGrid) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateKey(spec.Child("gridUniqKey"), g.Spec.GridUniqKey)
	if g.Spec.Template != nil {
		_, wrong := fieldsOf(spec.Child("template"), g.Spec.Template.JSON)
		errs = append(errs, wrong...)
	}
	return errs
}

func (s *WorkloadGridSpec) validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateKey(spec.Child("gridUniqKey"), s.GridUniqKey)
	if s.Template != nil {
		errs = append(errs, validateTemplate(spec.Child("template"), s.Template.JSON)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.TemplatePool)) {
		errs = append(errs, validateTemplate(spec.Child("templatePool").Key(name), s.TemplatePool[name].JSON)...)
	}
	return errs
}

func validateKey(path *field.Path, key string) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path, MessageKeyMissing)}
	}
	if len(content.IsLabelKey(key)) > 0 {
		return field.ErrorList{field.Invalid(path, key, MessageKeyInvalid)}
	}
	return nil
}

func validateTemplate(path *field.Path, template []byte) field.ErrorList {
	fields, errs := fieldsOf(path, template)
	raw, found := fields["replicas"]
	if !found {
		return errs
	}
	var replicas *int32
	path = path.Child("replicas")
	if err := json.Unmarshal(raw, &replicas); err != nil {
		return field.ErrorList{field.TypeInvalid(path, string(raw), "replicas must be a whole number of 32 bits")}
	}
	if replicas != nil && *replicas < 0 {
		return field.ErrorList{field.Invalid(path, *replicas, MessageReplicas)}
	}
	return nil
}

// fieldsOf returns the fields of a template, nil for null, or what is wrong with it.
func fieldsOf(path *field.Path, template []byte) (map[string]json.RawMessage, field.ErrorList) {
	if template == nil {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(template, &fields); err != nil {
		return nil, field.ErrorList{field.TypeInvalid(path, string(template), "a template must be the spec of a child, with fields")}
	}
	return fields, nil
}
