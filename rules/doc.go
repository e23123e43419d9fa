// Package rules turns a topology.View into a Ruleset: what the node must enforce, independent of
// any kernel mechanism. All questions of traffic policy are answered here, once. A backend only
// renders the answers.
//
// Where to look:
//
//   - one Service: its Frontends and Routes, traffic policies, masquerading, source ranges,
//     session affinity: service.go; the types of the result: ruleset.go
//   - several Services name one external IP, load balancer address or NodePort, or it is reserved
//     for API servers and local DNS: claims.go (which claim is the best), claim_index.go (who gets
//     it after a change)
//   - the addresses on which NodePorts answer: nodeports.go
//   - how Pods of this node are detected, health-check node ports, the order of decisions:
//     compile.go; the options of all this: config.go; results that did not change: memo.go
//   - what every backend returns: the outcome of a Sync, what another process wrote, and what
//     cleanup removes: outcome.go
//   - how a Sync reports that it advances, and how a verify is interrupted: reading.go
//
// Invariant: a Frontend without a usable endpoint in the unit is rejected, and no two Frontends of
// a Ruleset match the same packet.
//
// The package is pure: values in, values out.
package rules
