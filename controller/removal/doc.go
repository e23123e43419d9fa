// Package removal holds the rules for the removal of lost units, and of Grids from clusters, that
// Grids, NodeGroups and the hub share: how long they are kept, and how long a controller has
// watched before (grace.go), how many may be removed within an hour (budget.go, spent.go), and
// which of them a person has released by name (releases.go).
//
// Invariant: what cannot be read allows nothing.
//
// The package is pure: it takes values, the time included, and returns values.
package removal
