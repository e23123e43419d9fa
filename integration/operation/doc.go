// Package operation tests what an operator sees of a daemon on a real API server: its
// Events, health, metrics, log, and the answers of the other commands.
//
// Invariant: the API server is Kubernetes' own, and the daemon is the built binary on a
// node in a network namespace; nothing of either is faked.
package operation
