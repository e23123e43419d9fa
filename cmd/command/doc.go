// Package command is what the command lines of all our programs share: how a program runs
// and ends, how it logs, and what it knows about its own build.
//
// Invariant: exit code 0 is done, 1 is wrong input or a failure, 2 is a wrong command line,
// unless an error brings a code of its own; every problem is on standard error, one a line.
//
// Only Main and BridgeKlog touch the process; the rest works on what it is handed.
package command
