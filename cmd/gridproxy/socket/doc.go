// Package socket makes the unix sockets of the daemon, for its own user alone.
//
// Invariant: a socket at which another process answers is never taken. Not pure.
package socket
