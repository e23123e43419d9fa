// Package agent keeps the Grids of one cluster what the hub's bundles say, by means of Flux, and
// reports on them to the hub.
//
// Where to look:
//
//	agent.go      the order of one round, and what starts one
//	observe.go    what is read; watch.go: from which watches; kinds.go: which kinds are missing
//	apply.go      the copies of bundles, and the objects of Flux; flux.go: what these look like
//	prompt.go     how far Flux is, and when the agent asks it to look again
//	drift.go      which Grids were edited, so that Flux puts them back
//	reports.go    how reports and the Lease are written
//	server.go     how Flux fetches archives; limiter.go: how often
//	access.go     how an API server is reached, and the kinds that are known there; bound.go: how
//	              much it may send
//	pull.go       the agent of this cluster, by the Secret of grid-controller join
//	token.go      when the token in that Secret is renewed
//	push.go       the agents of other clusters, by their kubeconfigs; pushed.go: one of them
//	limits.go     times and bounds, such as how often the Lease is renewed
//
// What is applied and what is reported is decided by package delivery.
//
// Invariant: while the hub cannot be read, nothing that is applied changes, and Flux goes on with
// the copies. A Kustomization has deletionPolicy Orphan except while it is removed on purpose, so
// that one that is deleted by hand removes no Grid.
//
// Not pure: API servers, clock (injected), log and HTTP. Only this package, package hub and the
// packages grid and site of controller use controller-runtime, besides those of cmd.
package agent
