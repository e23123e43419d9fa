// Package healthcheck answers health-check node ports: it tells load balancers how many ready
// endpoints of a Service are on this node and in its unit.
//
// Invariant: a port is open exactly while the Ruleset last given to Sync has it, and the answer is
// the one of that Ruleset. Each Sync reports ports that could not be opened, and retries.
//
// Not pure: it listens on sockets. wantedPorts is pure.
package healthcheck
