// Package v1 holds the types of superedge.io/v1: DeploymentGrid, StatefulSetGrid and ServiceGrid.
// Their field names, labels and annotations are SuperEdge's, so that existing manifests apply
// unchanged.
//
// Where to look:
//
//   - one kind: deploymentgrid.go, statefulsetgrid.go, servicegrid.go; what they share, status and
//     conditions included: grid.go
//   - labels and annotations: constants.go; the group and its kinds: register.go
//   - which Grids are invalid: validation.go
//   - how a template is kept, as fields and as JSON: template.go; generated: zz_*.go
//
// Invariant: a template is kept as the JSON that the user wrote. Only the fields that we read, or
// that rules ask for, are declared, and undeclared fields are kept.
//
// The rules of the CRDs work with Kubernetes 1.25. A Grid without gridUniqKey cannot be created,
// and the key cannot be removed. A Grid whose template lacks what its child needs cannot be created
// either. A Grid that SuperEdge stored so stays editable. Kubernetes 1.25 has no rule for creation
// alone, so the rules ask for a status: the API server drops the status from a new object, and adds
// an empty one by default to every stored object that has none.
//
// Pure.
//
// +groupName=superedge.io
// +kubebuilder:object:generate=true
package v1
