// Package fleet is what an operator sees of all daemons and Grids of a cluster at one moment.
//
// Where to look: daemon.go decides from an answer of /healthz whether a daemon is healthy; node.go
// and grid.go are the rows of a Report; unit.go, the rows of one Grid; cluster.go, the clusters of
// a hub; report.go, the Report and its tables.
//
// Invariant: a daemon is healthy only if it has said so itself. Whatever prevents an answer makes
// it unknown. Texts of Nodes and Grids are bounded and printable. Pure.
package fleet
