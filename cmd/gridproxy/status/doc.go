// Package status is the answer of `gridproxy status`: what the daemon of this machine does, and
// whether it is healthy.
//
//	status.go     the fields of the answer, and what it says of one Service
//	problem.go    decides whether a daemon is healthy. Pure.
//	publisher.go  keeps what the last run found, and serves the answer
//	client.go     asks a daemon
//	table.go      prints the answer for people
//	limits.go     times and bounds
//
// Invariant: an answer waits for no sync. The publisher stores what a run found as one value, and
// answers from the last one. An answer has a bounded size, whatever is in the cluster.
//
// What is in an answer is known elsewhere, and taken from there: the state of families and the
// counts of Services from metrics, the time limits from health, other proxies from otherproxy.
//
// Only the decision is pure: the rest uses sockets, files and a clock.
package status
