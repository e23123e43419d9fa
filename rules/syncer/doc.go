// Package syncer runs snapshot → rules → kernel, one run at a time, for ever.
//
// Invariant: a run starts from a whole Snapshot; runs never overlap; a failed run leaves
// the last good rules of each table; nothing is flushed on exit.
package syncer
