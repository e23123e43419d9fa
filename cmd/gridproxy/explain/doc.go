// Package explain says of every endpoint of one Service whether this node uses it, and why
// not where it does not; in mode ipvs, also which of its addresses are virtual servers.
//
// Invariant: each endpoint that an EndpointSlice holds for a port of the Service appears
// once, and it is kept exactly if the View has it and something leads to it.
//
// The package is pure.
package explain
