package agent

import (
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AddToScheme makes a scheme know what agents read and write.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.ServiceAccount{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1alpha1.AddToScheme, coordinationv1.AddToScheme, authenticationv1.AddToScheme} {
		if err := add(s); err != nil {
			return fmt.Errorf("making the scheme of agents: %w", err)
		}
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
