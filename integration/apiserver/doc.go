// Package apiserver tests topology/watch's cluster source against a real API server: whatever the
// connection, the API server or etcd's history does, in the end the Snapshot holds exactly what a fresh
// list does.
//
// Invariant: no test waits for a fixed time. Each polls until the Snapshot and the list are equal, and
// fails with their difference at a deadline.
package apiserver
