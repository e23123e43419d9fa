// Package conntrack deletes UDP flows that point at endpoints no longer allowed, and
// counts TCP and SCTP flows that outlive a closure.
//
// The kernel chooses an endpoint once per flow. A UDP client that never falls silent would
// be sent to a dead or foreign endpoint for ever; TCP and SCTP notice by themselves and
// are never touched, because cutting them would break graceful termination.
//
// Invariant: only a flow is deleted whose original destination is a Frontend of ours, or
// was one when the table was last swept, and whose reply does not come from an endpoint
// that its Service still serves from inside the unit.
//
// Sweep is pure: it judges one flow. Cleaner is the end that talks to the kernel; it
// streams the table, of one family and protocol at a time, and holds nothing of it but
// what it deletes.
package conntrack
