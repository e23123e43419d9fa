// Package objectnames reads the names of objects from an API server, for the completion of shells.
// It is apart from package command, because not every program links a client of the API server.
//
// Invariant: a list is bounded in pages, in objects and in bytes, and nothing is printed.
//
// Not pure: it asks an API server.
package objectnames
