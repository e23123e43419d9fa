// Package similar finds what a mistyped name may have meant, for messages that suggest it.
//
//	names.go     which names are similar to one
//	distance.go  how similar two names are
//
// Invariant: the work is bounded, however many names there are. Pure.
package similar
