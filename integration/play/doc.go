// Package play runs the demonstrations: programs that build something on this computer, show it, and take it away
// again, after Ctrl-C too. Interrupt and NothingLeft are for their tests.
//
// Invariant: an interrupted play is waited for, and taken away; that everything is gone is said only if it is. Not pure.
package play
