// Package delivery decides, for one cluster, what of the hub's bundles is applied there, and what
// is reported about each Grid.
//
// Where to look: observed.go, what goes in; decide.go, what comes out; admit.go, which objects are
// applied, and why others are not; keep.go, which stay although the hub does not
// send them; report.go, what is reported about a Grid.
//
// Invariant: a Grid that was applied leaves the cluster only if the hub's FleetCluster says that it
// is withdrawn, by its UID. A bundle that has lost it, for example because the hub was restored
// from a backup, is not enough. It leaves what Flux applies when Flux knows it and prunes it, or
// when it is gone; if Flux fails while it prunes, the Grid stays, and is reported. Nothing but
// Grids of this hub, and Namespaces for them, is applied, and no Grid of another owner is taken
// over.
//
// Pure.
package delivery
