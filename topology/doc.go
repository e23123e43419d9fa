// Package topology decides which endpoints each Service may use from one node.
//
// Its one idea is closure: a Service that carries the annotation topologyKeys is
// confined to the NodeUnit of the node that looks at it, that is, to endpoints whose
// node shares a non-empty value of one of these label keys with this node.
//
// Invariant: what a Snapshot does not prove to be inside the unit is outside of it.
// An unknown node, a missing nodeName, an empty label value or an annotation that
// cannot be read never widens the set of endpoints.
//
// It also names a Grid's children, since the controller makes them and the node's DNS
// names come from them.
//
// The package is pure: values in, values out. No file, no clock, no network, no log.
package topology
