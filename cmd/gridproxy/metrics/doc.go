// Package metrics counts what the daemon does: kube-proxy's metrics under our prefix, with
// the same meaning and buckets, and those of closure. docs/metrics.md lists them.
//
// Invariant: everything stands on the registry that New was given; nothing is global.
//
// Metrics is an Observer of the syncer and is only told, never asks.
package metrics
