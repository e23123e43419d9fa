// Package syncer runs the loop from Snapshot to Ruleset to kernel, one run at a time, until it is
// stopped.
//
// Where each decision is taken:
//
//	schedule.go  when the next run starts, what it does, and the back-off after a failure
//	verification.go  when the kernel is read back although nothing failed
//	inbox.go     since when a change waits, from which health is derived
//	run.go       the steps of one run, and what is logged about it
//	limits.go    times
//
// Invariant: a run starts from a complete Snapshot. Runs never overlap. A failed run leaves the
// last good rules of each table in force. Nothing is flushed on exit.
//
// Not pure: clock and log. The schedule is a value that is given the time.
package syncer
