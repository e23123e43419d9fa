// Package health serves the health endpoints of the daemon: /healthz for load balancers and /livez
// for liveness probes as kube-proxy has them (KEP-3836), and /readyz, which only gridproxy has.
//
// Invariant: an answer depends only on the last run of the loop and on the Node of the last
// Snapshot. Losing the API server changes no answer.
//
// health.go has the handlers, decides /healthz and /livez, and has all decisions as a value, for
// gridproxy status. families.go decides /readyz, and which address families count.
// Not pure: Server knows the time.
package health
