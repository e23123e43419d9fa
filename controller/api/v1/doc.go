// Package v1 holds the types of superedge.io/v1: DeploymentGrid, StatefulSetGrid and ServiceGrid.
// Their field names, labels and annotations are SuperEdge's, so that existing manifests apply
// unchanged.
//
// Where to look: constants.go, labels, annotations and names of conditions; grid.go, what the Grids
// share; validation.go, which Grids are invalid; template.go and raw.go, how a template is kept.
//
// Invariant: a template is kept as the JSON that the user wrote. Only the fields that we read are
// declared, and undeclared fields are kept.
//
// The rules of the CRDs work with Kubernetes 1.25. A Grid without gridUniqKey cannot be created,
// and the key cannot be removed. A Grid that SuperEdge stored without it stays editable. Kubernetes
// 1.25 has no rule for creation alone, so the rule asks for a status: the API server drops the
// status from a new object, and the controller writes one immediately.
//
// Pure.
//
// +groupName=superedge.io
// +kubebuilder:object:generate=true
package v1
