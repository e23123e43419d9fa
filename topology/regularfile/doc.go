// Package regularfile opens and reads files that others may have put in place.
//
// Invariant: opening never waits. A FIFO without a writer, a device or a socket is an error that
// names the kind of file; and no read takes more memory than its limit.
package regularfile
