// Command grid-controller expands the Grids of superedge.io/v1 into one workload per NodeUnit and
// one Service, and applies NodeUnits and NodeGroups to Nodes.
//
// This package is flags, wiring and printing: main.go, the subcommands; options.go, the flags of
// run; run.go, the manager; starter.go, when the controllers start. Decisions about children are in
// controller/expand, those about Nodes in controller/site/assign.
//
// Invariant: exit codes are those of command.ExitCodes. An answer is written to standard output
// completely or not at all. Every warning is one line on standard error.
//
// Not pure: process, network and log.
package main
