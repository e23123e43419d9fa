package expand

import (
	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology"
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

// sharedLabels returns the labels of all children: the Grid's and ours, in a map of their own
// (B-04), and ours win. Labels of tools that prune stay with the Grid. Do not change the map: it
// is shared, since a Grid may have many labels and thousands of children.
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

// get returns a template without its nulls, and its problem, nil if nothing is wrong. The
// template is shared: copy it before you change it (B-03: one nodeSelector for all children).
func (t *templates) get(name string) (map[string]any, *Problem) {
	if _, done := t.decoded[name]; !done {
		spec, mistake := t.grid.spec().Decoded(name)
		t.decoded[name] = decoded{spec, problemOf(mistake)}
	}
	return t.decoded[name].spec, t.decoded[name].problem
}
