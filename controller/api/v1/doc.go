// Package v1 holds the types of superedge.io/v1: DeploymentGrid, StatefulSetGrid and ServiceGrid, with the field
// names, labels and annotations of SuperEdge, so that existing manifests apply unchanged.
//
// Invariant: a template is kept as the JSON that the user wrote. Only the fields that we read are declared, and
// nothing that is not declared is lost on the way through.
//
// The CRDs' rules use what Kubernetes 1.25 has. A Grid without gridUniqKey is refused when it is made, and the key cannot
// be removed; but one that SuperEdge stored without it stays editable. 1.25 has no rule for creation alone, so the rule
// asks for a status: the API server drops it from what is created, and the controller writes one at once.
//
// +groupName=superedge.io
// +kubebuilder:object:generate=true
package v1
