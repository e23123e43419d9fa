package gridspec

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/util/json"
)

// TemplateName returns the name of a unit's template: the one that templates has for the value,
// else the default's. "" there means "default" (SuperEdge).
func (s Spec) TemplateName(value string) string {
	if name, found := s.Templates[value]; found {
		return cmp.Or(name, v1.DefaultTemplate)
	}
	return s.defaultTemplate()
}

// defaultTemplate returns the name of the template of units that templates does not name.
func (s Spec) defaultTemplate() string { return cmp.Or(s.Default, v1.DefaultTemplate) }

// Decoded returns a template without its nulls, and what is wrong with it; nil if nothing is.
// Name "default" is spec.template. A template that is missing or not an object is nil.
func (s Spec) Decoded(name string) (map[string]any, *Mistake) {
	text, where, found := s.Template, "spec.template", s.Template != nil
	if name != v1.DefaultTemplate {
		text, found = s.Pool[name]
		where = fmt.Sprintf("spec.templatePool[%q]", name)
	}
	if !found {
		return nil, &Mistake{ReasonMissingTemplate, where + " is missing", s.remedy(name)}
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil || spec == nil {
		return nil, &Mistake{ReasonInvalidTemplate, where + " is not an object", "write the spec of a " + s.Kind.Child().Kind}
	}
	dropNulls(spec)
	if s.Kind == ServiceGrid {
		return spec, nil
	}
	return spec, checkWorkload(spec, where)
}

// remedy returns how to provide a template, or how not to need it.
func (s Spec) remedy(name string) string {
	switch {
	case name == v1.DefaultTemplate && s.Kind == ServiceGrid:
		return "write the spec of the Service there"
	case name == v1.DefaultTemplate:
		return "write it, or name one of templatePool in defaultTemplateName"
	default:
		return "add it, or name another template in templates or defaultTemplateName"
	}
}

// checkWorkload returns what is wrong with the fields that an overlay passes through; nil if
// nothing is. The API server validates everything else. where names the template in messages.
func checkWorkload(spec map[string]any, where string) *Mistake {
	for _, path := range [][]string{{"selector"}, {"template"}, {"template", "spec"}} {
		if ObjectAt(spec, path...) == nil {
			wrong := fmt.Sprintf("%s.%s is missing or not an object", where, strings.Join(path, "."))
			return &Mistake{ReasonInvalidTemplate, wrong, "write it as in a Deployment or StatefulSet"}
		}
	}
	for _, path := range [][]string{
		{"template", "spec", "nodeSelector"}, {"template", "metadata"}, {"template", "metadata", "labels"}, {"selector", "matchLabels"},
	} {
		value, found := ObjectAt(spec, path[:len(path)-1]...)[path[len(path)-1]]
		if _, ok := value.(map[string]any); found && !ok {
			wrong := fmt.Sprintf("%s.%s is not an object", where, strings.Join(path, "."))
			return &Mistake{ReasonInvalidTemplate, wrong, "write names and values there"}
		}
	}
	if selector := spec["selector"].(map[string]any); len(selector) == 0 {
		return &Mistake{ReasonInvalidTemplate, where + ".selector is empty", "write matchLabels with labels of the Pods there"}
	}
	return nil
}

// ObjectAt returns the object at a path; nil if it is absent or not an object.
func ObjectAt(o map[string]any, path ...string) map[string]any {
	for _, field := range path {
		o, _ = o[field].(map[string]any)
	}
	return o
}

// dropNulls removes fields that are null from value, at any depth. In a template they have no
// meaning (creationTimestamp: null), but in an apply they would become fields that we own.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for _, field := range value {
			dropNulls(field)
		}
	case []any:
		for _, entry := range value {
			dropNulls(entry)
		}
	}
}
