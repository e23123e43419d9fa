// Package federation is the overview of how Grids are distributed to several clusters; it has no
// code.
//
// The hub, package hub, watches the Grids with the label superedge.io/fed: "yes", FleetClusters,
// GridReports and the Leases of members. Package plan decides which Grids are to be in which
// cluster. The hub writes that down as GridBundles in the namespace fleet-<cluster>, one for each
// namespace of Grids.
//
// An agent, package agent, works for one cluster; package delivery decides for it. It copies the
// bundles, without what cannot be applied there, to where Flux runs, serves them to Flux over HTTP,
// and describes to Flux what is to be applied. It reports on every Grid, and renews a Lease each
// minute. The agent of a cluster with pull: true is in that cluster's own grid-controller
// (--federation=member). That of a cluster with a kubeconfig is in the hub's (--federation=hub).
//
// Flux's kustomize-controller applies, prunes and repairs. grid-controller itself expands what is
// applied, as it does any Grid.
//
// Package archive packs objects. What reports say is folded into the status of a Grid by
// controller/grid/expand.
//
// Invariant: a Grid leaves a cluster only because it, its selector or the FleetCluster says so; a
// list that is short removes nothing. Without the hub each cluster goes on.
package federation
