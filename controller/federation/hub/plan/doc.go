// Package plan decides which Grids are to be in which cluster.
//
// Where to look: observed.go and plan.go, what goes in and comes out; read.go, what is sent of a
// Grid; decide.go, which Grids a cluster gets, step by step; member.go, one cluster, and why
// nothing is changed in it; held.go, Grids that the hub does not know, and those that it has
// withdrawn; leaving.go, Grids that are not meant for a cluster any more; bundle.go, what is sent;
// status.go and condition.go, what a FleetCluster says; limits.go, times and bounds. What of a
// bundle is applied in a cluster is decided by controller/federation/agent/delivery.
//
// Invariant: a Grid leaves a cluster only because it is deleted, because the FleetCluster says so,
// or after a grace and within a budget because it is not meant for the cluster any more. A Grid
// that the hub does not know holds its namespace in the cluster. What is in a bundle is listed or
// withdrawn, or held. No Secret is ever sent.
//
// Pure: it takes the observed state, the time included, and returns what to do and what to report.
package plan
