// Package metrics defines the Prometheus metrics of the daemon: those of kube-proxy under our
// prefix, with the same meaning and buckets, and those of closure. docs/metrics.md lists them.
//
// Invariant: New registers every metric in the registry that it is given. There is no global state,
// and no metric is registered later.
//
// Where to look:
//
//   - runs, programming latency, changes, health answers: metrics.go, and how changes are counted:
//     changes.go
//   - rules, verify, conntrack, and what is asked of the driver (Kernel): kernel.go; Services that
//     the kernel refuses: quarantine.go
//   - the state of each address family: families.go; virtual servers: servers.go; what differs
//     with --shadow: shadow.go
//   - closed Services, left-out endpoints, address conflicts: closure.go
//   - the DNS of this node: dns.go; node-local API proxies: apiproxy.go
//   - the saved state, and endpoints that are held: state.go; requests to API servers: requests.go
//   - what the program was built from: build.go; the same metrics under kube-proxy's names:
//     kubeproxy.go; how a metric is made and registered: factory.go
//
// Metrics is an Observer of the syncer. Not pure: it sets gauges and counters.
package metrics
