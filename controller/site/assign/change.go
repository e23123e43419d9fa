package assign

import (
	"reflect"

	"gridproxy/controller/api/site/v1alpha2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ReadAnnotations returns the keys of annotations of Nodes that decisions about these units
// read or write.
func ReadAnnotations(units []*v1alpha2.NodeUnit) sets.Set[string] {
	keys := sets.New(v1alpha2.AnnotationTaints, v1alpha2.AnnotationKeptLabels, v1alpha2.AnnotationAllowRemoval)
	for _, u := range units {
		if u.Spec.Selector != nil {
			for key := range u.Spec.Selector.Annotations {
				keys.Insert(key)
			}
		}
		for key := range u.Spec.Set().Annotations {
			keys.Insert(key)
		}
	}
	return keys
}

// Matters reports whether a Node has changed in something that decisions rest on, of its
// annotations only those with the given keys and our own. Heartbeats do not matter.
func Matters(before, after *corev1.Node, annotations sets.Set[string]) bool {
	same := *before
	same.ResourceVersion = after.ResourceVersion
	if reflect.DeepEqual(&same, after) {
		return false
	}
	a, b := ReadNode(&same), ReadNode(after)
	for _, n := range []*Node{&a, &b} {
		n.Foreign.Annotations = n.Foreign.Annotations.Intersection(annotations)
		read := map[string]string{}
		for key, value := range n.Annotations {
			if annotations.Has(key) || n.Owned.Annotations.Has(key) {
				read[key] = value
			}
		}
		n.Annotations = read
	}
	return !reflect.DeepEqual(a, b)
}
