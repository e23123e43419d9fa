// Command grid-controller expands the Grids of superedge.io/v1 into one workload per NodeUnit and
// one Service, and applies NodeUnits and NodeGroups to Nodes.
//
// This package is flags, wiring and printing: main.go, the subcommands; options.go, the flags of
// run; run.go, the manager; federation.go, its part in distributing Grids; starter.go, when the
// controllers start; leftovers.go, what remains of a distribution that is switched off. Decisions
// about children are in controller/grid/expand, those about Nodes in controller/site/assign, those
// about other clusters in controller/federation/hub/plan and controller/federation/agent/delivery.
//
// Invariant: exit codes are those of command.ExitCodes. An answer is written to standard output
// completely or not at all. Every warning is one line on standard error.
//
// Not pure: process, network and log.
package main
