// Package healthcheck answers health-check node ports: it tells load balancers how many ready
// endpoints of a Service are on this node and in its unit.
//
// Where each decision is taken: answer.go, what the answer is; port.go, on which addresses;
// server.go, when a port is opened and closed.
//
// Invariant: a port is open exactly while the Ruleset last given to Sync has it, and the answer is
// the one of that Ruleset. Each Sync reports ports that could not be opened, and retries.
//
// Not pure: it listens on sockets. wantedPorts is pure.
package healthcheck
