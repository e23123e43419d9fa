package grid

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions are the options of a manager's cache for Add. Every object is reduced to what is
// read: children by their types (see Scheme), a Node to its labels and whether it is ready. A
// manager that has other controllers which read more of Nodes overrides what is left of these.
// Nothing is watched outside the namespaces; none: all are watched.
func CacheOptions(namespaces []string) cache.Options {
	o := cache.Options{DefaultTransform: trim}
	for _, name := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[name] = cache.Config{}
	}
	return o
}

func trim(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		trimNode(o)
	case client.Object:
		o.SetManagedFields(nil)
	}
	return o, nil
}

func trimNode(n *corev1.Node) {
	n.ManagedFields, n.Annotations, n.OwnerReferences = nil, nil, nil
	var ready []corev1.NodeCondition
	if c := readiness(n); c.Type != "" {
		ready = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
	}
	n.Spec, n.Status = corev1.NodeSpec{}, corev1.NodeStatus{Conditions: ready}
}
