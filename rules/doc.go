// Package rules turns a topology.View into a Ruleset: what the node must enforce, independent of
// any kernel mechanism. All questions of traffic policy are answered here, once. A backend only
// renders the answers.
//
// Where each decision is taken:
//
//	claims.go     which Service gets an external IP, a load balancer address or a NodePort that
//	              several Services name, and what is reserved for API servers and local DNS
//	service.go    the Frontends and Routes of a Service: traffic policies, masquerading, source
//	              ranges, session affinity
//	nodeports.go  the addresses on which NodePorts answer
//	compile.go    how Pods of this node are detected; health-check node ports; the order of decisions
//	outcome.go    what the results of several backends add up to
//
// Memo, in memo.go, remembers results and decides nothing. ruleset.go declares what a Ruleset is.
//
// Invariant: a Frontend without a usable endpoint in the unit is rejected, and no two Frontends of
// a Ruleset match the same packet.
//
// The package is pure: values in, values out.
package rules
