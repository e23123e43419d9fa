// Package hub runs the part of the hub in the distribution of Grids: it observes Grids,
// FleetClusters, and what members report, executes what package plan decides on, and reports
// faults. It decides nothing about which Grid is to be where.
//
// Where to look: reconciler.go, what is read; observe.go, how it becomes what a decision rests on;
// memo.go, what is read once from each version; heard.go, when a member was heard; written.go, for
// what a decision waits; execution.go, the order of the steps; finalizer.go, bundle.go and
// status.go, the steps; excess.go, which reports are deleted; faults.go, Events; cache.go, what
// the manager's cache keeps.
//
// Invariant: a step runs only after those that it depends on have succeeded. A bundle never has a
// Grid without the finalizer. A Grid loses the finalizer only after the API server itself shows
// that no bundle is older than the decision. What one namespace of Grids cannot have written holds
// up that namespace alone. All memory can be lost at any time.
//
// Not pure: API server, clock (injected) and log.
package hub
