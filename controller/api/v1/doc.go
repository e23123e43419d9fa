// Package v1 holds the types of superedge.io/v1: DeploymentGrid, StatefulSetGrid and ServiceGrid, with the field
// names, labels and annotations of SuperEdge, so that existing manifests apply unchanged.
//
// Invariant: a template is kept as the JSON that the user wrote. Only the fields that we read are declared, and
// nothing that is not declared is lost on the way through.
//
// +groupName=superedge.io
// +kubebuilder:object:generate=true
package v1
