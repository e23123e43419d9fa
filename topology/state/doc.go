// Package state is the form in which a Snapshot lies on disk, so that a node can enforce it again
// after a reboot without an API server.
//
//	state.go   what a file holds, and when two Snapshots are the same to it
//	encode.go  writes a file
//	frame.go   the parts of its body
//	decode.go  reads a file
//
// A file has these parts, numbers in big-endian order:
//
//	magic     8 bytes "GRIDSTAT"
//	version   uint32
//	header    uint32 length, then JSON: Header
//	body      frames of one object each, compressed with gzip
//	length    uint64, of all before it
//	checksum  SHA-256 of all before it
//
// A frame is a kind (one byte), a length (uint32) and that many bytes: an API object as protobuf,
// or JSON. A reader skips frames of a kind that it does not know, so that a kind may be added
// without another version. Namespaces and Grids are such a kind: they come before every slice, so
// that a reader knows that slices hold what DNS reads.
//
// Invariants: nothing is read of a file whose checksum is wrong. No file is larger than MaxFile,
// and no body is larger than MaxBody. What a Slice warns of is not kept: see topology.Slice.Object.
//
// Pure: it knows no files and no clock.
package state
