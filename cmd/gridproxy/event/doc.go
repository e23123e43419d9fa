// Package event decides what people are told about a Service: that its topology
// annotations cannot be read, that this node's unit lost its last endpoint for it, and that
// its scheduler is not to be had.
//
// Invariant: only a transition is told, never a state, and only by nodes that belong to
// the unit that it concerns, so that a fleet is not one voice per node.
//
// Next and NextUnscheduled are pure. Teller is the end that logs and records, at a bounded rate.
package event
