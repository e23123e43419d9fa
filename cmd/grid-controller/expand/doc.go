// Package expand is the command `grid-controller expand`: it prints what Grids come to, from files alone, or compares that
// with a cluster. All decisions are controller/expand's; it reads, asks, and prints.
//
// Invariant: nothing is ever written to a cluster; every change is asked for as a dry run. Not pure: files, standard
// streams, an API server.
package expand
