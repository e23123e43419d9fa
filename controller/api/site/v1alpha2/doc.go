// Package v1alpha2 holds the types of site.superedge.io. A NodeUnit joins Nodes into one site. A
// NodeGroup joins NodeUnits under one label key. Their field names, labels, annotations and
// finalizers are SuperEdge's.
//
// Where to look: nodeunit.go and nodegroup.go, the types; selector.go, what a selector matches;
// validation.go, which names and values are invalid; constants.go, labels and conditions. Which
// labels a NodeUnit writes is decided in controller/site/assign.
//
// Invariant: v1alpha1 and v1alpha2 are the same objects. SuperEdge renamed fields between them
// (setnode became setNode) and converted them with a webhook. Here both versions declare both
// spellings, and nothing is converted. Only methods such as Set, Units and FindKeys read a field
// that has two spellings. The v1alpha2 spelling is written.
//
// Pure.
//
// +groupName=site.superedge.io
// +kubebuilder:object:generate=true
package v1alpha2
