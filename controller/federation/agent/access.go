package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// newAccess returns access to an API server, with a cache that ends with ctx. It asks the API
// server which kinds it has, unless the options have a Mapper.
func newAccess(ctx context.Context, config *rest.Config, options cache.Options) (Access, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return Access{}, err
	}
	options.Scheme = scheme
	c, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme, o.Cache, o.MapperProvider = scheme, options, boundedMapper
		if options.Mapper != nil {
			o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return options.Mapper, nil }
		}
	})
	if err != nil {
		return Access{}, err
	}
	go func() { _ = c.Start(ctx) }() // it ends with ctx
	return Access{Cache: c.GetCache(), Client: c.GetClient(), Live: c.GetAPIReader()}, nil
}

// boundedMapper returns a mapper that asks an API server what it serves. A context does not end
// that, so its requests have a timeout, which those of watches cannot have.
func boundedMapper(config *rest.Config, shared *http.Client) (meta.RESTMapper, error) {
	own := *shared
	own.Timeout = requestTimeout
	return apiutil.NewDynamicRESTMapper(config, &own)
}

// slimGrids returns a transform for a cache. Of Grids that are not from the hub with this UID,
// it keeps only what tells whose they are: a cluster may have any number of its own.
func slimGrids(hub string) func(any) (any, error) {
	bare := func(m *metav1.ObjectMeta) bool {
		m.ManagedFields = nil
		from := m.Annotations[v1alpha1.AnnotationFrom]
		if m.Labels[v1alpha1.LabelHub] == hub || strings.HasPrefix(from, hub+"/") { // also after an edit
			return false
		}
		kept := metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		}
		if from != "" {
			kept.Annotations = map[string]string{v1alpha1.AnnotationFrom: from}
		}
		*m = kept
		return true
	}
	return func(o any) (any, error) {
		switch g := o.(type) {
		case *v1.DeploymentGrid:
			if bare(&g.ObjectMeta) {
				return &v1.DeploymentGrid{ObjectMeta: g.ObjectMeta}, nil
			}
		case *v1.StatefulSetGrid:
			if bare(&g.ObjectMeta) {
				return &v1.StatefulSetGrid{ObjectMeta: g.ObjectMeta}, nil
			}
		case *v1.ServiceGrid:
			if bare(&g.ObjectMeta) {
				return &v1.ServiceGrid{ObjectMeta: g.ObjectMeta}, nil
			}
		}
		return o, nil
	}
}

// AddToScheme makes a scheme know what agents read and write.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.ServiceAccount{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	all := runtime.NewSchemeBuilder(v1.AddToScheme, v1alpha1.AddToScheme, coordinationv1.AddToScheme, authenticationv1.AddToScheme)
	if err := all.AddToScheme(s); err != nil {
		return fmt.Errorf("making the scheme of agents: %w", err)
	}
	return nil
}

// hubKinds returns the kinds that a member reads and writes on its hub.
func hubKinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for of, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		v1alpha1.GroupVersion().WithKind("FleetCluster"):     meta.RESTScopeRoot,
		v1alpha1.GroupVersion().WithKind("GridBundle"):       meta.RESTScopeNamespace,
		v1alpha1.GroupVersion().WithKind("GridReport"):       meta.RESTScopeNamespace,
		coordinationv1.SchemeGroupVersion.WithKind("Lease"):  meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"): meta.RESTScopeNamespace,
	} {
		m.Add(of, scope)
		m.Add(of.GroupVersion().WithKind(of.Kind+"List"), scope)
	}
	return m
}
