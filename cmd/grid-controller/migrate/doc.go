// Package migrate is the command `grid-controller migrate-crds`. It replaces the
// CustomResourceDefinitions of SuperEdge by ours and rewrites the objects that are stored under
// them. It also checks whether that has been done.
//
// Where to look: migration.go, the order of the migration; rewrite.go, how objects are rewritten;
// check.go, which definitions the controllers cannot work with; crd.go, our definitions;
// command.go, the flags.
//
// Invariant: no definition and no object is deleted. Each is written only as the next version of
// what was read. The command can be run again after any failure: what is done is not written twice.
//
// Not pure, except for crd.go: an API server and standard streams.
package migrate
