// Package feed learns what DNS says on this node from the daemon, and keeps it.
//
//	client.go    the connection to the daemon
//	contents.go  what is known: the index of all names; pure
//	limits.go    times
//	file.go      the same over a restart, in a file on a file system in memory
//
// Invariant: what is known is whole, always. A feed that breaks, or that cannot be read, changes
// nothing: the client connects again and gets everything.
package feed
