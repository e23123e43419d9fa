// Package regularfile opens and reads files in places where others can create files.
//
// Invariant: opening never blocks. A FIFO, a device or a socket is an error that names the kind of
// file. No read allocates more than its limit. Not pure: it reads files.
package regularfile
