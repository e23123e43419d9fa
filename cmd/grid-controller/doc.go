// Command grid-controller expands the Grids of superedge.io/v1 into one workload per NodeUnit and
// one Service, and applies NodeUnits and NodeGroups to Nodes.
//
// Where to look:
//
//   - the subcommands: main.go; the flags of run: options.go; the manager, which controllers it
//     has, the logs of libraries, and a namespace of --namespaces that does not exist: run.go
//   - when the controllers start: starter.go; the Lease of the leader: lease.go
//   - the part in distributing Grids: federation.go; what remains after it is switched off:
//     leftovers.go
//   - times and bounds: limits.go
//
// Decisions about children are in controller/grid/expand, those about Nodes in
// controller/site/assign, those about other clusters in controller/federation/hub/plan and
// controller/federation/agent/delivery.
//
// Invariant: exit codes are those of command.ExitCodes. An answer is written to standard output
// completely or not at all. Every warning is one line on standard error.
//
// Not pure: process, network and log.
package main
