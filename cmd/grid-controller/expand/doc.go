// Package expand is the command `grid-controller expand`. It prints the children of Grids, from
// files alone, or compares them with a cluster. All decisions are taken in controller/grid/expand.
//
// Where to look: command.go, the flags; input.go, how files are read; children.go, what is printed;
// cluster.go, the comparison with a cluster.
//
// Invariant: nothing is written to a cluster. Every change is requested as a dry run.
//
// Not pure: files, standard streams and an API server.
package expand
