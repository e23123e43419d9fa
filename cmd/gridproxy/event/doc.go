// Package event decides what people are told about a Service: that its topology
// annotations cannot be read, and that this node's unit lost its last endpoint for it.
//
// Invariant: only a transition is told, never a state, and only by nodes that belong to
// the unit that it concerns, so that a fleet is not one voice per node.
//
// Next is pure. Teller is the end that logs and records, at a bounded rate.
package event
