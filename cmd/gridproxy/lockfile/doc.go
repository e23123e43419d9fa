// Package lockfile makes locks between daemons of one machine: flock(2) on files that only their
// own user may open. The folder itself, or an abstract socket, could be locked by any user.
//
// Invariant: the kernel releases a lock when its process ends, whichever way. The file stays, since
// removing it would let two processes lock two files of one name. Not pure.
package lockfile
