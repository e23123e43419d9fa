// Package grid runs the controllers of the Grids. It observes the cluster, executes the steps that
// package expand decides on, remembers their results, and writes one status per Grid.
//
// Where to look:
//
//	reconciler.go  the order of one reconcile
//	observe.go     what is read from the caches; child.go, live.go: what is kept of an object
//	fleet.go       what is read of other clusters, on a hub
//	triggers.go    which events start a reconcile
//	run.go         in which order, and how many at the same time; when an execution ends
//	execution.go   how steps are executed; race.go: conflicts with other writers
//	rival.go       how it is found out who keeps changing a child
//	release.go, remove.go, takeover.go, evict.go: the steps of these names
//	refusal.go     which errors of the API server are refusals; retry.go: when these are retried
//	status.go      how the status is written; notice.go: which Events are sent
//	memory.go      what is remembered between reconciles
//	missing_service.go  which Services StatefulSetGrids name in vain
//	misplaced.go   how Pods outside their unit are found
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
