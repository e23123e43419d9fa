// Package migrate is the command `grid-controller migrate-crds`: it turns the CustomResourceDefinitions of SuperEdge into
// ours, with every object that is stored under them. It also knows from a definition whether that was done.
//
// Invariant: no definition and no object is ever deleted, and none is written unless the API server takes it as the next
// version of what was read. Everything can be done again, from the beginning or after any failure: what is done already
// is not written twice. Not pure: an API server and standard streams; crd.go is.
package migrate
