package grid

import (
	"gridproxy/controller/api/v1alpha1"

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

// FleetObjects are more options of that cache, for ByObject, if Config.Fleet is set: reports are
// watched in the namespaces of all clusters.
func FleetObjects() map[client.Object]cache.ByObject {
	everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
	return map[client.Object]cache.ByObject{&v1alpha1.GridReport{}: {Namespaces: everywhere}}
}

func trim(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Node:
		trimNode(o)
	case *v1alpha1.GridReport:
		trimReport(o)
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
