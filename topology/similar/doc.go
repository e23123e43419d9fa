// Package similar finds what a mistyped name may have meant, for messages that suggest it.
//
// Invariant: the work is bounded, however many names there are. Pure.
package similar
