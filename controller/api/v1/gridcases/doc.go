// Package gridcases is a table of valid and invalid Grids, for the tests of everything that
// validates them: Validate, and the API server with the CRDs.
//
// Invariant: both validate the same objects. Pure.
package gridcases
