package expand

import (
	"maps"
	"slices"

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
		spec, mistake := t.grid.Decoded(name)
		t.decoded[name] = decoded{spec, problemOf(mistake)}
	}
	return t.decoded[name].spec, t.decoded[name].problem
}

// unusedTemplates returns the entries of templatePool that no unit can have, sorted: neither the
// default nor named in templates, whether or not the unit exists (SuperEdge). An entry called
// "default" cannot be used.
func (a *assessment) unusedTemplates() []string {
	used := a.Grid.usedTemplates()
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(a.Grid.Pool)) {
		if !used[name] && !slices.Contains(a.Pruned, name) {
			unused = append(unused, name)
		}
	}
	return unused
}

// usedTemplates returns the names in templates and defaultTemplateName. "" and "default" are
// left out, because they mean spec.template.
func (g Grid) usedTemplates() map[string]bool {
	used := map[string]bool{g.Default: true}
	for _, name := range g.Templates {
		used[name] = true
	}
	delete(used, "")
	delete(used, v1.DefaultTemplate)
	return used
}

// prunable returns the unused templates that are to be removed: with autoDeleteUnusedTemplate,
// those that were not removed before. A template that comes back is kept by another writer, and
// removing it again would never end. So no more are removed than the status has room to name.
func (a *assessment) prunable() []string {
	if !a.Grid.AutoPrune {
		return nil
	}
	size := 0
	for _, name := range a.prunedTemplates() {
		size += sizeOf(name)
	}
	return slices.DeleteFunc(a.unusedTemplates(), func(name string) bool {
		if slices.Contains(a.Observed.Status.PrunedTemplates, name) || size+sizeOf(name) > namesSizeMax {
			return true
		}
		size += sizeOf(name)
		return false
	})
}

// returnedTemplates returns the unused templates that were removed and exist again; none
// without autoDeleteUnusedTemplate.
func (a *assessment) returnedTemplates() []string {
	if !a.Grid.AutoPrune {
		return nil
	}
	return slices.DeleteFunc(a.unusedTemplates(), func(name string) bool {
		return !slices.Contains(a.Observed.Status.PrunedTemplates, name)
	})
}

// prunedTemplates returns the templates that were removed, sorted; none without
// autoDeleteUnusedTemplate. They are in the status, so that a restart does not remove them
// again. A template that a unit uses again belongs to the user, and may be removed again later.
func (a *assessment) prunedTemplates() []string {
	if !a.Grid.AutoPrune {
		return nil
	}
	used := a.Grid.usedTemplates()
	names := slices.Concat(a.Observed.Status.PrunedTemplates, a.Pruned)
	names = slices.DeleteFunc(names, func(name string) bool { return used[name] })
	slices.Sort(names)
	return fitNames(slices.Compact(names))
}
