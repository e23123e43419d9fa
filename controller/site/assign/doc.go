// Package assign decides which labels, annotations and taints each Node gets from all NodeUnits and
// NodeGroups together, and what must be written to Nodes, units and groups.
//
// Where each decision is taken:
//
//	node_labels.go  which labels, annotations and taints a NodeUnit writes; conflicts of units
//	unit.go         which Nodes a unit holds; selection.go: selectors that read what units write
//	node_index.go   which Nodes a selector is asked about; change.go: which changes of a Node matter
//	group.go        which units a group holds; find.go: the units that it finds by label values;
//	                new_units.go: which of them may be made
//	node.go         which labels and annotations of a Node change; taint.go: which taints
//	record.go       what is restricted, which of it is ours, and what changes of it
//	settled.go      from which Nodes an edit of a unit takes labels
//	in_use.go       which labels a Node keeps after its unit or group; kept.go: how that is reported;
//	                uses.go: which label keys Grids and Services name
//	owner.go        which keys of a Node are ours
//	removal.go      when a unit that a group has found is deleted
//	patch.go        what is written to a unit or a group
//	report.go       the conditions of a unit or a group; news.go: which Events are sent
//	decide.go       the order of all of this (Decide)
//
// Observed, in observed.go, is the input of all of them.
//
// Invariant: what a Node carries because of units depends only on the units that hold it, and on
// labels in use that it keeps. A Node that joins a unit and leaves it again carries what it carried
// before. Values that others have set are not overwritten, except for label keys that are names of
// units and groups. Only what is recorded as ours is removed. A Node gets something of a unit or
// group only after their finalizers can be seen.
//
// The package is pure: it takes the observed state, the time included, and returns what to do.
package assign
