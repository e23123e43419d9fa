// Package site runs the controller of NodeUnits and NodeGroups. It observes them and all Nodes,
// executes the steps that package assign decides on, and remembers what it wrote until its caches
// show it. It decides nothing about them.
//
// Where to look: reconciler.go, what is observed; uses.go, which label keys Grids and Services
// name; execution.go, how steps are executed; metrics.go; limits.go, times. Package written knows
// which objects are stale. Which labels, annotations and taints a NodeUnit writes is decided in
// package assign.
//
// Invariant: a Node is written only where it differs. One forced apply carries the labels and
// annotations of all units that hold the Node, with metadata.uid, so that it never creates a Node.
// Taints are an atomic list, which is written only against the version that was read. The memory
// can be lost at any time.
//
// Not pure: API server, clock (injected) and log.
package site
