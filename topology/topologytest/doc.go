// Package topologytest draws random Snapshots and random changes to them, for property tests.
//
// Invariant: what it draws depends on the rapid.T alone.
package topologytest
