// Package document runs the commands that a document shows, as its reader would, so that a test can prove the document.
//
// Invariant: what is run stands in the document, to the byte; a heading without commands is an error. Document is pure but
// for reading its file; Shell starts processes in a folder of its own.
package document
