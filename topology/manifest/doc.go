// Package manifest reads Services, EndpointSlices and Nodes from files as kubectl would apply them:
// decoded strictly, with the API server's defaults, and refused only for what an API server
// refuses. What it stores and no proxy can use is a warning.
//
// Where to look:
//
//   - which files are read, when a file is read again, and objects of further kinds: reader.go
//   - which kinds are read, and lists of objects: parsed.go; the Snapshot of all objects:
//     objects.go; any object as it is written: raw.go
//   - a value of the wrong type, a duplicate field: decode.go
//   - defaults and refused fields of one kind: check_service.go, check_slice.go, check_node.go; of
//     all kinds, of Namespaces and of StatefulSetGrids: check.go
//   - objects that cannot exist in one cluster together: conflict.go
//   - how a message names file, document and object, how long it is, and how many are printed:
//     problem.go
//
// Invariant: every error and warning names the file, the document and the field. Objects are
// returned only if there is no error. Package documents cuts a file into documents. Reader and
// ReadRaw open files; the rest is pure.
package manifest
