// Package event decides what people are told about a Service: that its topology
// annotations cannot be read, that this node's unit lost its last endpoint for it, that its
// scheduler is not available, and that another Service has an address that it names.
//
// Invariant: only a transition is told, never a state, and only by nodes that belong to
// the unit that it concerns, so that a fleet is not one voice per node. What every node sees
// alike, a mistake in an annotation, is told by one node of each unit: the first by name,
// since nobody here knows which others run. Where it is away, or has no daemon, the other
// units tell it; every node has it in its log, and in gridproxy_malformed_annotations.
//
// Next and the funcs named after it are pure. Teller is the end that logs and records, at
// a bounded rate.
package event
