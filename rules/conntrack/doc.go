// Package conntrack cleans up connection tracking: it deletes UDP flows to endpoints that are not
// allowed any more, and counts TCP and SCTP flows that outlive a closure.
//
// The kernel chooses an endpoint once per flow. A UDP client that never pauses would always be sent
// to a dead or foreign endpoint. TCP and SCTP detect this on their own. Their flows are never
// deleted, because that would break graceful termination.
//
// Where each decision is taken:
//
//	sweep.go    which flows are stale
//	cleaner.go  when the table is swept, and what happens after a failure
//	kernel.go   how flows are listed and deleted over netlink
//
// Invariant: a flow is deleted only if its original destination is a Frontend of ours, or was one
// at the last sweep, and if its reply does not come from an endpoint that the Service serves in the
// unit.
//
// Sweep is pure: it judges one flow. Cleaner talks to the kernel. It streams the table, one family
// and protocol at a time, and holds only what it deletes.
package conntrack
