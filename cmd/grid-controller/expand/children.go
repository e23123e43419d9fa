package expand

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gridproxy/controller/grid/expand"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

type made struct {
	grid  expand.Grid
	child expand.Child
}

// String returns the Grid and, except for a ServiceGrid, the unit of the child, for messages.
func (m made) String() string {
	text := fmt.Sprintf("%s %s/%s", m.grid.Kind, m.grid.Namespace, m.grid.Name)
	if m.grid.Kind == expand.ServiceGrid {
		return text
	}
	return fmt.Sprintf("%s, unit %s", text, m.child.Value)
}

// object returns the kind, namespace and name of the child itself.
func (m made) object() string {
	return fmt.Sprintf("%s %s/%s", m.grid.Kind.Child().Kind, m.grid.Namespace, m.child.Name)
}

func compareMade(a, b made) int {
	return cmp.Or(
		cmp.Compare(a.grid.Namespace, b.grid.Namespace),
		cmp.Compare(a.grid.Kind.Child().Kind, b.grid.Kind.Child().Kind),
		cmp.Compare(a.child.Name, b.child.Name),
		cmp.Compare(a.grid.Name, b.grid.Name),
	)
}

// children returns the children of all Grids, sorted. warnings names the Grids without
// children, and problems joins why units have no child.
func (in input) children() (all []made, warnings []string, problems error) {
	for _, g := range in.grids {
		if g.Deleting {
			warnings = append(warnings, fmt.Sprintf("%s %s/%s is being deleted: it has no children", g.Kind, g.Namespace, g.Name))
			continue
		}
		values := slices.Collect(maps.Keys(units(in.nodes, g.Key)))
		if g.Kind != expand.ServiceGrid && len(values) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s %s/%s: no Node in the files has the label %s, so it has no children; "+
				"add Nodes with -f, as `kubectl get nodes -o yaml` prints them", g.Kind, g.Namespace, g.Name, g.Key))
		}
		for _, c := range expand.Children(g, values, nil) {
			all = append(all, made{g, c})
		}
	}
	slices.SortFunc(all, compareMade)
	all, problems = sound(all)
	return all, warnings, problems
}

// sound returns all without what no cluster can have: children with a problem, and all but the
// first of neighbours that share a name. The error joins why they are left out.
func sound(all []made) ([]made, error) {
	var errs []error
	var kept []made
	for _, m := range all {
		switch last := len(kept) - 1; {
		case m.child.Problem != nil:
			errs = append(errs, fmt.Errorf("%s: %s", m, m.child.Problem.Message))
		case last >= 0 && kept[last].object() == m.object():
			errs = append(errs, fmt.Errorf("%s: its %s is also that of %s: rename one of the Grids", m, m.object(), kept[last]))
		default:
			kept = append(kept, m)
		}
	}
	return kept, errors.Join(errs...)
}

// printed returns the children as YAML, each below a comment that names its Grid and unit.
func printed(all []made) ([]byte, error) {
	var text bytes.Buffer
	for i, m := range all {
		if i > 0 {
			text.WriteString("---\n")
		}
		fmt.Fprintf(&text, "# %s\n", m)
		y, err := asYAML(m.child.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		text.Write(y)
	}
	return text.Bytes(), nil
}

// asYAML returns an object as YAML, without the fields that only its cluster sets: a Grid in a
// file has no UID.
func asYAML(o *unstructured.Unstructured) ([]byte, error) {
	o = o.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	if owners, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences"); len(owners) > 0 {
		for _, owner := range owners {
			delete(owner.(map[string]any), "uid")
		}
		_ = unstructured.SetNestedSlice(o.Object, owners, "metadata", "ownerReferences") // it was one
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("writing it as YAML: %w", err)
	}
	return text, nil
}
