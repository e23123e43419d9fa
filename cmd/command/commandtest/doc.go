// Package commandtest checks what every program of this repository must have: a man page and exit
// codes for each command, and no package that it must not link. Each program has a test that calls
// it.
//
// Invariant: a program is used as its users have it, through command.Run.
package commandtest
