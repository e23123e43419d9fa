// Package gridspec reads the specs of Grids, and decides what is wrong with a Grid as it is
// written. It is apart from package expand, because the commands of the node daemon look at Grids
// too, and must not depend on what the controller does.
//
//	spec.go      the spec of any of the three Grids
//	grid.go      a Spec with the name of its Grid
//	template.go  which template a unit gets, and what it holds
//	mistake.go   what is wrong, whatever exists
//
// Invariant: a template is read as JSON and never passed through typed structs.
//
// The package is pure.
package gridspec
