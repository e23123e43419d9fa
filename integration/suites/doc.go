// Package suites is the table of all test suites: what each one proves, what it runs, where, what
// it needs, how long it takes, and which skips are expected there. The Makefile and CI read this
// table; nothing else decides what is run.
//
// Invariant: every test of this repository belongs to at least one suite (TestEveryTestHasASuite).
//
// Pure: package suites decides, the command integration/suites/run starts the processes.
package suites
