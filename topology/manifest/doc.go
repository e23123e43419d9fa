// Package manifest reads Services, EndpointSlices and Nodes from files as kubectl would apply them: decoded
// strictly, with the API server's defaults, and checked as it checks them.
//
// Invariant: every error and warning names the file, the document and the field, and Objects are handed out
// only where there is no error. Reader and ReadRaw open files; the rest is pure.
package manifest
