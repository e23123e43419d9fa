package expand

import (
	"cmp"
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/util/json"
)

// templates are a Grid's templates, each decoded once however many units use it. Not safe for
// concurrent use.
type templates struct {
	grid    Grid
	decoded map[string]decoded
	labels  map[string]any // of all children, once they were asked for
}

type decoded struct {
	spec    map[string]any
	problem *Problem
}

func newTemplates(g Grid) *templates { return &templates{grid: g, decoded: map[string]decoded{}} }

// sharedLabels are the labels of all children: the Grid's and ours, in a map of their own (B-04),
// and ours win. Labels of tools that prune stay with the Grid. Do not change the map: a Grid may
// have many labels and thousands of children.
func (t *templates) sharedLabels() map[string]any {
	if t.labels == nil {
		t.labels = map[string]any{}
		for name, value := range t.grid.Labels {
			if !belongsToTool(name) {
				t.labels[name] = value
			}
		}
		t.labels[v1.LabelSelector], t.labels[v1.LabelKey] = t.grid.selector(), topology.LabelValue(t.grid.Key)
	}
	return t.labels
}

// templateName is the name of a unit's template: what templates says, else the default's; "" is
// another way of saying "default" (SuperEdge).
func (g Grid) templateName(value string) string {
	if name, found := g.Templates[value]; found {
		return cmp.Or(name, v1.DefaultTemplate)
	}
	return g.defaultTemplate()
}

// defaultTemplate is the name of the template of units that templates does not name.
func (g Grid) defaultTemplate() string { return cmp.Or(g.Default, v1.DefaultTemplate) }

// get is a template without its nulls. It is shared: copy it before you change it (B-03: one
// nodeSelector for all children).
func (t *templates) get(name string) (map[string]any, *Problem) {
	if _, done := t.decoded[name]; !done {
		spec, mistake := t.decode(name)
		t.decoded[name] = decoded{spec, mistake.problem()}
	}
	return t.decoded[name].spec, t.decoded[name].problem
}

func (t *templates) decode(name string) (map[string]any, *Mistake) {
	text, where, found := t.grid.Template, "spec.template", t.grid.Template != nil
	if name != v1.DefaultTemplate {
		text, found = t.grid.Pool[name]
		where = fmt.Sprintf("spec.templatePool[%q]", name)
	}
	if !found {
		return nil, &Mistake{ReasonMissingTemplate, where + " is missing", t.grid.remedy(name)}
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil || spec == nil {
		return nil, &Mistake{ReasonInvalidTemplate, where + " is not an object", "write the spec of a " + t.grid.Kind.Child().Kind}
	}
	dropNulls(spec)
	if t.grid.Kind == ServiceGrid {
		return spec, nil
	}
	return spec, checkWorkload(spec, where)
}

// remedy says how to provide a template, or how not to need it.
func (g Grid) remedy(name string) string {
	switch {
	case name == v1.DefaultTemplate && g.Kind == ServiceGrid:
		return "write the spec of the Service there"
	case name == v1.DefaultTemplate:
		return "write it, or name one of templatePool in defaultTemplateName"
	default:
		return "add it, or name another template in templates or defaultTemplateName"
	}
}

// checkWorkload checks the fields that an overlay passes through. The API server validates
// everything else.
func checkWorkload(spec map[string]any, where string) *Mistake {
	for _, field := range [][]string{{"selector"}, {"template"}, {"template", "spec"}} {
		if o, path := objectAt(spec, field...); o == nil {
			return &Mistake{ReasonInvalidTemplate, fmt.Sprintf("%s.%s is missing or not an object", where, path), "write it as in a Deployment or StatefulSet"}
		}
	}
	for _, field := range [][]string{{"template", "spec", "nodeSelector"}, {"template", "metadata"}, {"template", "metadata", "labels"}, {"selector", "matchLabels"}} {
		parent, _ := objectAt(spec, field[:len(field)-1]...)
		if value, found := parent[field[len(field)-1]]; found {
			if _, ok := value.(map[string]any); !ok {
				_, path := objectAt(spec, field...)
				return &Mistake{ReasonInvalidTemplate, fmt.Sprintf("%s.%s is not an object", where, path), "write names and values there"}
			}
		}
	}
	if selector := spec["selector"].(map[string]any); len(selector) == 0 {
		return &Mistake{ReasonInvalidTemplate, where + ".selector is empty", "write matchLabels with labels of the Pods there"}
	}
	return nil
}

// objectAt is the object at a path, nil if there is none, and the path as text.
func objectAt(o map[string]any, path ...string) (map[string]any, string) {
	text := ""
	for i, field := range path {
		if i > 0 {
			text += "."
		}
		text += field
		o, _ = o[field].(map[string]any)
	}
	return o, text
}

// dropNulls removes fields that are null. In a template they have no meaning (creationTimestamp:
// null), but in an apply they would become fields that we own.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
				continue
			}
			dropNulls(field)
		}
	case []any:
		for _, entry := range value {
			dropNulls(entry)
		}
	}
}
