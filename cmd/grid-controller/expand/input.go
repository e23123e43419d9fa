package expand

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/topology/manifest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type input struct {
	grids  []expand.Grid
	nodes  map[string]labels.Set // by name; nil if there is no Node
	places map[string]string     // by kind, namespace and name
}

// read returns the Grids and Nodes in the files, and warnings; file "-" is in. Grids without a
// namespace get this one. The error joins everything that is wrong, one line each.
func read(files []string, in io.Reader, namespace string) (input, []string, error) {
	all, warnings, err := manifest.ReadRaw(files, in)
	errs := []error{err}
	read := input{places: map[string]string{}}
	for _, raw := range all {
		errs = append(errs, read.add(raw, namespace))
	}
	if err := errors.Join(errs...); err != nil {
		return input{}, warnings, err
	}
	if len(read.grids) == 0 {
		return input{}, warnings, fmt.Errorf("%s: no DeploymentGrid, StatefulSetGrid or ServiceGrid is in there", strings.Join(files, ", "))
	}
	return read, warnings, nil
}

// readable is any of the three Go types.
type readable interface {
	metav1.Object
	Validate() field.ErrorList
}

func (in *input) add(raw manifest.Raw, namespace string) error {
	kind := schema.FromAPIVersionAndKind(raw.APIVersion, raw.Kind)
	if kind == corev1.SchemeGroupVersion.WithKind("Node") {
		return in.addNode(raw)
	}
	var g readable
	var reader func() expand.Grid
	switch expand.Kind(kind.Kind) {
	case expand.DeploymentGrid:
		typed := &v1.DeploymentGrid{}
		g, reader = typed, func() expand.Grid { return expand.FromDeploymentGrid(typed) }
	case expand.StatefulSetGrid:
		typed := &v1.StatefulSetGrid{}
		g, reader = typed, func() expand.Grid { return expand.FromStatefulSetGrid(typed) }
	case expand.ServiceGrid:
		typed := &v1.ServiceGrid{}
		g, reader = typed, func() expand.Grid { return expand.FromServiceGrid(typed) }
	}
	if g == nil || kind.Group != v1.Group {
		return nil // another's kind
	}
	if kind.Version != v1.Version {
		return fmt.Errorf("%s: apiVersion: is %s; write %s, the only version that is read", raw.Place, raw.APIVersion, v1.GroupVersion())
	}
	if err := raw.Decode(g); err != nil {
		return err
	}
	if g.GetNamespace() == "" {
		g.SetNamespace(namespace)
	}
	if err := in.note(raw, g); err != nil {
		return err
	}
	var errs []error
	for _, e := range g.Validate() {
		errs = append(errs, fmt.Errorf("%s: %w", raw.Place, e))
	}
	in.grids = append(in.grids, reader())
	return errors.Join(errs...)
}

func (in *input) addNode(raw manifest.Raw) error {
	var n metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw.JSON, &n); err != nil {
		return fmt.Errorf("%s: %w; correct it", raw.Place, err)
	}
	if in.nodes == nil {
		in.nodes = map[string]labels.Set{}
	}
	in.nodes[n.Name] = n.Labels
	return in.note(raw, &n)
}

// note records the place of an object. It returns an error if the object has no name, or is the
// second one with its kind, namespace and name.
func (in *input) note(raw manifest.Raw, o metav1.Object) error {
	if o.GetName() == "" {
		return fmt.Errorf("%s: metadata.name: is missing; write one", raw.Place)
	}
	key := raw.Kind + " " + o.GetNamespace() + "/" + o.GetName()
	if first, found := in.places[key]; found {
		return fmt.Errorf("%s: is also in %s; keep one", raw.Place, first)
	}
	in.places[key] = raw.Place
	return nil
}

// units returns the names of the Nodes that carry each value of a label key, by value. Nodes
// without a value are left out.
func units(nodes map[string]labels.Set, key string) map[string][]string {
	units := map[string][]string{}
	for name, labels := range nodes {
		if value := labels[key]; value != "" {
			units[value] = append(units[value], name)
		}
	}
	return units
}
