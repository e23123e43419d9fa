// Package metrics defines the Prometheus metrics of the daemon: those of kube-proxy under our
// prefix, with the same meaning and buckets, and those of closure. docs/metrics.md lists them.
//
// Invariant: New registers every metric in the registry that it is given. There is no global state,
// and no metric is registered later.
//
// Where to look:
//
//   - runs, programming latency, changes, health answers, what the program was built from:
//     metrics.go
//   - what other components are asked for (Kernel): rules, verify, conntrack, Services that the
//     kernel refuses, virtual servers, what differs with --shadow, node-local API proxies, the
//     saved state and endpoints that are held: kernel.go
//   - the state of each address family: families.go
//   - closed Services, left-out endpoints, address conflicts: closure.go
//   - the DNS of this node: dns.go; requests to API servers: requests.go
//   - the same metrics under kube-proxy's names: kubeproxy.go; how a metric is made and registered:
//     factory.go
//
// Metrics is an Observer of the syncer. Not pure: it sets gauges and counters.
package metrics
