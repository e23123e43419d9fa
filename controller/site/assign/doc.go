// Package assign decides what every Node carries: its labels, annotations and taints, from all NodeUnits and NodeGroups
// at once, and what has to be written to have it so, to Nodes, units and groups. It is pure: it takes everything that is
// known, the time included, and returns what to do.
//
// Invariant: what a Node carries because of units depends only on the units that hold it. A Node that joins a unit and
// leaves it again carries what it carried before: what others have set is not overwritten, but for the label keys that
// are the names of units and groups, and only what is recorded as ours is removed.
package assign
