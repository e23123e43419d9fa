// Package matrix makes the answer of `gridproxy matrix`: from which units the clients of each unit
// are answered, for many Services at once.
//
// A unit is all Nodes with one value of a label key that closes a Service. Nodes without any such
// label are a row of their own.
//
//	matrix.go  the answer, and how it is put together
//	unit.go    which units there are
//	group.go   which Services and which Nodes share a decision
//	near.go    which endpoints a decision needs
//	cell.go    what a cell says of the decisions for the Nodes of a unit
//	print.go   prints the answer in a format of --output: as a table, or as a page
//
// Invariant: a cell says what topology.Resolve decides for each Node of the unit. Nodes share a
// decision only if nothing that it reads differs between them.
//
// There are at most MaxUnits units, so that the answer is bounded whatever keys Services name.
//
// The package is pure.
package matrix
