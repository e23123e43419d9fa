// Package documents decodes the text of a YAML or JSON file and cuts it into documents.
//
// Where each decision is taken:
//
//	decode.go  which encodings and line ends are read
//	chunk.go   where a document ends, and what is malformed: its position (document and line)
//	read.go    how many documents a file may hold
//
// Invariant: a text is read whole, or there is an error. Other programs cut at other places, so
// the YAML library itself decides whether it ignores a part of the text between two markers. Pure.
package documents
