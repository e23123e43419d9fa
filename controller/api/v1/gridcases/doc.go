// Package gridcases is a table of Grids that are right and wrong, for the tests of all that judge them: Validate, and the
// API server with the CRDs.
//
// Invariant: both judge the same objects. Pure.
package gridcases
