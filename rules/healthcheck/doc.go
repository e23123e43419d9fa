// Package healthcheck answers health-check node ports: how many ready endpoints of a
// Service this node has inside its unit, for load balancers that ask each node.
//
// Invariant: a port is open exactly while the Ruleset last given to Sync has it, and the
// answer is that Ruleset's. What could not be opened is told at each Sync and tried again.
package healthcheck
