// Package grid runs the controllers of the Grids. It observes the cluster, executes the steps that
// package expand decides on, remembers their results, and writes one status per Grid.
//
// Where to look:
//
//   - Add, the controllers that it starts, and what their caches keep: add.go; what differs between
//     the three Grids: kind.go; the order of one reconcile: reconciler.go
//   - which events start a reconcile: triggers.go
//   - what is read from the caches: observe.go; what these keep of a child: child.go; by what they
//     can be searched: index.go; what expand reads of a child: live.go
//   - other clusters, on a hub: fleet.go
//   - how steps are executed: execution.go; in which order, how many at the same time, and when an
//     execution ends: run.go
//   - the steps: release.go (also prunes templates), remove.go, takeover.go, misplaced.go (evicts),
//     the others in execution.go
//   - conflicts with other writers: race.go; who keeps changing a child: rival.go
//   - which errors of the API server are refusals: refusal.go; when these are tried again:
//     retry.go
//   - how the status is written: status.go; which Events are sent, also about a Service that a
//     StatefulSetGrid names and that does not exist: notice.go; metrics: metrics.go; times and
//     bounds: limits.go
//   - what is remembered between reconciles: memory.go; Pods outside their unit: misplaced.go
//
// Conditions, names of children and all other decisions about children are in package expand.
//
// Invariant: an object is written only by a step that expand returned, with the preconditions of
// that step. The memory can be lost at any time: a controller that restarts arrives at the same
// children.
//
// Not pure: API server, clock (injected), log and metrics. Only the packages grid and site of this
// folder and those of cmd use controller-runtime.
package grid
