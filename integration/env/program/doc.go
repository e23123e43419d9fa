// Package program returns the paths of this module's programs for tests that start them.
//
// Invariant: a program is linked once for all tests of a run. The runner of suites builds it
// before, or go build finds that the file in bin/programs is up to date.
//
// Not pure: it runs the go command.
package program
