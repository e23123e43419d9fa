// Package health answers kube-proxy's health questions over HTTP: /healthz for load
// balancers, /livez for liveness probes (KEP-3836), and /readyz, which is ours.
//
// Invariant: the answer is a pure function of what the loop and the Node last said; an API
// server that is away changes no answer.
package health
