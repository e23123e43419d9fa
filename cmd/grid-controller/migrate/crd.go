package migrate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/deploy"
	"gridproxy/topology/documents"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Command is what an operator types to have definitions replaced.
const Command = "grid-controller migrate-crds"

// Definitions returns our CustomResourceDefinitions of kinds that SuperEdge has too, sorted by
// name.
func Definitions() ([]apiext.CustomResourceDefinition, error) {
	folder, err := deploy.CRDs()
	if err != nil {
		return nil, fmt.Errorf("finding our CustomResourceDefinitions in this program: %w", err)
	}
	files, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing our CustomResourceDefinitions: %w", err)
	}
	var all []apiext.CustomResourceDefinition
	for _, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, fmt.Errorf("reading our CustomResourceDefinitions: %w", err)
		}
		if text, err = documents.ReadOne(text); err != nil {
			return nil, fmt.Errorf("reading our CustomResourceDefinition in %s: %w", file, err)
		}
		var d apiext.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &d); err != nil {
			return nil, fmt.Errorf("reading our CustomResourceDefinition in %s: %w", file, err)
		}
		if !(d.Spec.Group == v1alpha1.Group && storageVersion(&d) == v1alpha1.Version) { // those of a fleet are ours alone
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b apiext.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// storageVersion returns the version in which objects are stored; "" if no version is the
// storage version. No API server accepts that.
func storageVersion(d *apiext.CustomResourceDefinition) string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
