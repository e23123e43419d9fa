// Package metrics defines the Prometheus metrics of the daemon: those of kube-proxy under our
// prefix, with the same meaning and buckets, and those of closure. docs/metrics.md lists them.
//
// Invariant: New registers every metric in the registry that it is given. There is no global state,
// and no metric is registered later.
//
//	metrics.go     runs, programming latency, changes, health answers
//	families.go    the state of each address family
//	kernel.go      rules, verify, conntrack, and what is asked of the driver (Kernel)
//	servers.go     virtual servers
//	shadow.go      what differs with --shadow
//	quarantine.go  Services that the kernel refuses
//	closure.go     closed Services, left-out endpoints, address conflicts
//
// Metrics is an Observer of the syncer. Not pure: it sets gauges and counters.
package metrics
