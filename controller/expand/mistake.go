package expand

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/topology"
)

// Mistake is what is wrong with a Grid as it is written, whatever children exist.
type Mistake struct {
	Reason string // as in a Problem
	Wrong  string // what is wrong, and where
	Remedy string // what to do
}

// problem is the Mistake as a unit's; nil for nil.
func (m *Mistake) problem() *Problem {
	if m == nil {
		return nil
	}
	return &Problem{m.Reason, m.Wrong + ": " + m.Remedy}
}

// withoutUnits is what is wrong if no Node has a value for the Grid's key. nodeKeys are those that
// Nodes have.
func (g Grid) withoutUnits(nodeKeys []string) Mistake {
	m := Mistake{ReasonNoUnits, "no Node has the label " + g.Key, "label Nodes with it to have a unit"}
	if keys := topology.Nearest(g.Key, nodeKeys); len(keys) > 0 {
		m.Remedy += ", or correct gridUniqKey: Nodes have the similar " + strings.Join(keys, ", ")
	}
	return m
}

// NodeLabels are the labels of all Nodes, as far as they matter to a Grid.
type NodeLabels struct {
	Keys   []string // for which a Node has a value
	Values []string // that Nodes have for the Grid's key
}

// Mistakes are those of a Grid: of its key, and of the templates that templates and
// defaultTemplateName name, the default one only if a unit gets it or no unit is known. Without
// nodes, nothing is known of units.
func (g Grid) Mistakes(nodes *NodeLabels) []Mistake {
	var all []Mistake
	if m := g.keyMistake(); m != nil {
		all = append(all, *m)
	} else if nodes != nil && len(nodes.Values) == 0 {
		all = append(all, g.withoutUnits(nodes.Keys))
	}
	var values []string
	if nodes != nil {
		values = nodes.Values
	}
	names := map[string]bool{}
	for value := range g.Templates {
		names[g.templateName(value)] = true
	}
	others := func(value string) bool { _, found := g.Templates[value]; return !found }
	if len(values) == 0 || slices.ContainsFunc(values, others) {
		names[g.defaultTemplate()] = true
	}
	decoder := newTemplates(g)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, m := decoder.decode(name); m != nil {
			all = append(all, *m)
		}
	}
	return all
}
