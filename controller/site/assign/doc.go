// Package assign decides which labels, annotations and taints each Node gets from all NodeUnits and
// NodeGroups together, and what must be written to Nodes, units and groups.
//
// Where to look:
//
//   - what goes in: observed.go, and of a Node owner.go (also which of its keys are ours, and
//     which of its changes matter); what comes out: plan.go; the order of all decisions: decide.go
//     (Decide)
//   - which Nodes a unit holds: unit.go, node_index.go (which Nodes are compared with a selector),
//     selection.go (selectors that read what units write)
//   - which units a group holds: group.go; the units that it finds by label values, and which of
//     these may be made: find.go; when they are deleted: removal.go
//   - what a unit writes to its Nodes, and conflicts of units: node_labels.go
//   - what of a Node changes: node.go (labels and annotations), taint.go; what is restricted, and
//     which of it is ours: record.go
//   - labels that a Node keeps after its unit or group: in_use.go, uses.go (the keys that Grids
//     and Services name), kept.go (the report); from which Nodes an edit of a unit takes labels:
//     settled.go
//   - what is written to a unit or a group: patch.go, and how a patch is made: edit.go
//   - the conditions of a unit or a group: report.go; which Events are sent: news.go; how
//     much they say: limits.go
//
// Invariant: what a Node carries because of units depends only on the units that hold it, and on
// labels in use that it keeps. A Node that joins a unit and leaves it again carries what it carried
// before. Values that others have set are not overwritten, except for label keys that are names of
// units and groups. Only what is recorded as ours is removed. A Node gets something of a unit or
// group only after their finalizers can be seen.
//
// The package is pure: it takes the observed state, the time included, and returns what to do.
package assign
