// Command kubectl-grid is the plugin `kubectl grid`: what an operator at a desk sees of the daemons
// and Grids of a cluster. kubectl runs it for `kubectl grid`, if it is in the PATH.
//
// Where to look:
//
//   - the subcommands: main.go, status.go, clusters.go, units.go, explain.go, matrix.go,
//     analyze.go
//   - the flags of kubectl, and the connection to the API server: connection.go; what is listed
//     there: reader.go
//   - the names that a shell offers: completion.go
//
// What is healthy is decided in fleet; nodeproxy asks the daemons; answers about Services
// are those of cmd/inspect/matrix, explain and analyze.
//
// Invariant: nothing is written to the cluster. An answer is written to standard output completely
// or not at all, each problem is one line on standard error. It runs on every system that kubectl
// runs on, so it imports nothing of a Node's kernel.
//
// Not pure: process and network.
package main
