// Package v1alpha2 holds the types of site.superedge.io: NodeUnit, Nodes joined into one site, and NodeGroup, NodeUnits
// joined under one label key, with the field names, labels, annotations and finalizers of SuperEdge.
//
// Invariant: v1alpha1 and v1alpha2 are the same objects. SuperEdge renamed fields between them (setnode became setNode)
// and converted by a webhook; here both versions declare both spellings and the API server converts nothing. Only
// the methods Set, Units, FindKeys and so on read a field that has two spellings. What is written is the v1alpha2
// spelling.
//
// +groupName=site.superedge.io
// +kubebuilder:object:generate=true
package v1alpha2
