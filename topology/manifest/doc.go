// Package manifest reads Services, EndpointSlices and Nodes from files as kubectl would apply them:
// decoded strictly, with the API server's defaults, and refused only for what an API server
// refuses. What it stores and no proxy can use is a warning.
//
// Where each decision is taken:
//
//	reader.go    which files are read, and when a file is read again
//	decode.go    a value of the wrong type, a duplicate field: in which field a problem is
//	place.go     how a message names the file, the document and the object
//	problem.go   how long a message is, and how many are printed
//	check.go     rules that all kinds share; check_service.go and so on: one kind
//	conflict.go  objects that cannot exist in one cluster together
//	parsed.go    which kinds are read, and lists of objects
//	contents.go  objects of further kinds, and how many are skipped
//	raw.go       objects of any kind, as the manifest has them
//
// Invariant: every error and warning names the file, the document and the field. Objects are
// returned only if there is no error. Package documents cuts
// a file into documents. Reader and ReadRaw open files; the rest is pure.
package manifest
