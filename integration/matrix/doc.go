// Package matrix counts and shows who was answered by whom: the nodes that ask are its rows, the endpoints its
// columns, both in the order of their units, so that where closure holds it is block-diagonal.
//
// Invariant: an answer of an endpoint that is not a column has left its unit. Pure.
package matrix
