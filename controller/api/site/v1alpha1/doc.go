// Package v1alpha1 exists for the CRDs alone: controller-gen makes the served version v1alpha1 from it. Its objects
// are those of v1alpha2, field by field; programs use that package.
//
// +groupName=site.superedge.io
// +kubebuilder:object:generate=true
package v1alpha1
