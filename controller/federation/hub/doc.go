// Package hub runs the part of the hub in the distribution of Grids: it observes Grids,
// FleetClusters, and what members report, executes what package plan decides on, and reports
// faults. It decides nothing about which Grid is to be where.
//
// Where to look:
//
//   - Add, and which events start a reconcile: add.go; what is read: reconciler.go; what the
//     manager's cache keeps: cache.go
//   - how what is read becomes what a decision rests on, once for each version, and when a member
//     was heard: observe.go
//   - the order of the steps: execution.go; the steps: finalizer.go, bundle.go, status.go
//   - for which writes of this package, by package written, the caches are waited for: written.go
//   - reports that are deleted because they are too large: excess.go
//   - Events: faults.go; metrics: metrics.go; times and bounds: limits.go
//
// Invariant: a step runs only after those that it depends on have succeeded. A bundle never has a
// Grid without the finalizer. A Grid loses the finalizer only after the API server itself shows
// that no bundle is older than the decision. What one namespace of Grids cannot have written holds
// up that namespace alone. All memory can be lost at any time.
//
// Not pure: API server, clock (injected) and log.
package hub
