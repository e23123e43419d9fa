package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/similar"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ParseName parses NAMESPACE/NAME, or NAME for one in a namespace; "" = default. Both must not
// differ in the namespace. As for kubectl, svc/ and service/ may stand before a NAME.
func ParseName(text, namespace string) (types.NamespacedName, error) {
	first, name, found := strings.Cut(text, "/")
	switch {
	case !found:
		first, name = cmp.Or(namespace, "default"), text
	case first == "svc" || first == "service":
		first = cmp.Or(namespace, "default")
	case namespace != "" && namespace != first:
		return types.NamespacedName{}, fmt.Errorf("%s is not in namespace %s; give the namespace once", excerpt.Quoted(text), excerpt.Quoted(namespace))
	}
	if len(validation.IsDNS1123Label(first)) > 0 || len(validation.IsDNS1035Label(name)) > 0 && len(validation.IsDNS1123Label(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%s is not the name of a Service; want NAMESPACE/NAME, or NAME for one in namespace %s",
			excerpt.Quoted(text), cmp.Or(namespace, "default"))
	}
	return types.NamespacedName{Namespace: first, Name: name}, nil
}

// NameOf returns the namespace and name of a Service.
func NameOf(svc *corev1.Service) types.NamespacedName {
	return types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}
}

// Find returns the Service of a name. If it does not exist, the error suggests similar names.
func Find(s topology.Snapshot, name types.NamespacedName) (*corev1.Service, error) {
	i := slices.IndexFunc(s.Services, func(svc *corev1.Service) bool { return NameOf(svc) == name })
	if i < 0 {
		return nil, unknown(s, name)
	}
	return s.Services[i], nil
}

// FindAll returns the Services of some names, each once, in the order of the Snapshot. A name
// without a Service is an error, as in Find.
func FindAll(s topology.Snapshot, names []types.NamespacedName) ([]*corev1.Service, error) {
	wanted := make(map[*corev1.Service]bool, len(names))
	for _, name := range names {
		svc, err := Find(s, name)
		if err != nil {
			return nil, err
		}
		wanted[svc] = true
	}
	return slices.DeleteFunc(slices.Clone(s.Services), func(svc *corev1.Service) bool { return !wanted[svc] }), nil
}

// InNamespace returns the Services of a Snapshot in a namespace, or all of them if it is "". It
// returns an error if the namespace has none.
func InNamespace(s topology.Snapshot, namespace string) ([]*corev1.Service, error) {
	if namespace == "" {
		return s.Services, nil
	}
	all := slices.DeleteFunc(slices.Clone(s.Services), func(svc *corev1.Service) bool { return svc.Namespace != namespace })
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no Service in namespace %s among the %d of the source", excerpt.Quoted(namespace), len(s.Services))
	}
	return all, nil
}

// mostSuggestions keeps the message on one line.
const mostSuggestions = 5

// unknown returns the error for a Service that does not exist, with similar names.
func unknown(s topology.Snapshot, want types.NamespacedName) error {
	type near struct {
		name     string
		distance int
	}
	var candidates []near
	for _, svc := range s.Services {
		d := similar.Distance(svc.Name, want.Name)
		if svc.Namespace != want.Namespace {
			d++
		}
		if d <= 1+len(want.Name)/4 || strings.HasPrefix(svc.Name, want.Name) && want.Name != "" {
			candidates = append(candidates, near{svc.Namespace + "/" + svc.Name, d})
		}
	}
	if len(candidates) == 0 {
		return fmt.Errorf("there is no Service %s among the %d of the source, and none with a similar name", want, len(s.Services))
	}
	slices.SortFunc(candidates, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, mostSuggestions)
	for _, c := range candidates[:min(len(candidates), mostSuggestions)] {
		names = append(names, c.name)
	}
	return fmt.Errorf("there is no Service %s; did you mean %s?", want, strings.Join(names, ", "))
}
