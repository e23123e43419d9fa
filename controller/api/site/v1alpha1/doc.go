// Package v1alpha1 exists only for the CRDs: controller-gen makes their version v1alpha1 from it.
// Programs use package v1alpha2.
//
// Invariant: its objects have the same fields as those of v1alpha2. Pure.
//
// +groupName=site.superedge.io
// +kubebuilder:object:generate=true
package v1alpha1
