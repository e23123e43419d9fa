// Package plan decides which Grids are to be in which cluster.
//
// Where to look: observed.go and plan.go, what goes in and comes out; content.go and read.go, what
// is sent of a Grid; decide.go, the order of a decision; member.go, one cluster, and why nothing is
// changed in it; held.go, Grids that the hub does not know, and those that it has withdrawn;
// bundle.go, what is sent; silence.go, status.go and condition.go, what a FleetCluster says. What
// of a bundle is applied in a cluster is decided by controller/federation/delivery.
//
// Invariant: a Grid leaves a cluster only because it is deleted, its selector does not select the
// cluster any more, or the FleetCluster says so. A Grid that the hub does not know holds the
// cluster. No Secret is ever sent.
//
// Pure: it takes the observed state, the time included, and returns what to do and what to report.
package plan
