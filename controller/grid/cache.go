package grid

import (
	"gridproxy/controller/api/v1alpha1"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns the options of a manager's cache for Add. Children are reduced to what is
// read by their types (see Scheme), and Nodes by the options of package site. The cache watches
// only the namespaces, or all if there are none.
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

// FleetObjects returns more options of that cache, for ByObject, if Config.Fleet is set: it
// watches reports in all namespaces, so in those of all clusters.
func FleetObjects() map[client.Object]cache.ByObject {
	everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
	return map[client.Object]cache.ByObject{&v1alpha1.GridReport{}: {Namespaces: everywhere}}
}

func trim(o any) (any, error) {
	switch o := o.(type) {
	case *v1alpha1.GridReport:
		trimReport(o)
	case client.Object:
		o.SetManagedFields(nil)
	}
	return o, nil
}
