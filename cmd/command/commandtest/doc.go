// Package commandtest checks what every program of this repository must have: a man page and exit
// codes for each command, a bound for each flag, no package that it must not link, and an answer to
// each flag of SuperEdge. Each program has a test that calls it.
//
// Invariant: a program is used as its users have it, through command.Run.
package commandtest
