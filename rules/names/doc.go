// Package names is the index of every name of the cluster domain: what a DNS server answers for
// Services, endpoints, Pods and addresses, by version 1.1.0 of the DNS specification of Kubernetes,
// as the kubernetes plugin of CoreDNS reads it.
//
// Which file decides what:
//
//	zone.go        what a Zone is made of, and how a new one comes from an old one
//	question.go    what a name asks for
//	lookup.go      the records of a name
//	reverse.go     the names of an address
//	nameserver.go  which server the domain names as its own
//	sharded.go     the persistent map that a Zone is built on
//	limits.go      the TTL of records, and bounds
//
// Invariant: a Zone never changes, so any number of goroutines may ask it while the next one is
// made. A new Zone costs what its Change costs, and shares all else. One question costs at most
// stepsMax steps to count its records and twice as many to collect them, and returns no more
// records than its caller can send, however large a Service is.
//
// Pure: no clock, no I/O, no randomness: a caller says at which record an answer begins. The
// package knows names and addresses, not messages.
package names
