// Package dnsfeed is the form in which the daemon tells a DNS server of its node what DNS says
// about Services, and in which that server keeps it over a restart.
//
//	update.go  what changes between two Views
//	backlog.go what is sent first, and what large Services wait for
//	wire.go    the parts of an update as they are encoded
//	frame.go   the frames in which they travel
//	writer.go  writes a greeting, updates and reports
//	reader.go  reads them
//	file.go    a whole View as a file with a checksum
//	limits.go  how large frames and updates are, and how often large Services are sent
//
// A frame is a length (uint32, big-endian, of what follows, at most MaxFrame), a kind (one byte)
// and its content in CBOR (RFC 8949) with numbered fields. The daemon sends a Hello, then updates;
// the first holds everything but large Services, which it names. An update is any number of frames
// with its parts and one that commits it. The server sends Reports. A reader skips frames of a kind
// and fields of a number that it does not know, so that both can be added without another version.
//
// Invariants: an update counts only when it has been committed; a reader that finds anything wrong
// returns an error, and what came before it stays. No frame is larger than MaxFrame and no update
// larger than MaxUpdate.
//
// Pure: it reads from and writes to what it is given, and knows no sockets, files or clock.
package dnsfeed
