// Command gridproxy keeps the traffic of Services inside this node's NodeUnit.
//
// This package has the subcommands. It decides nothing about traffic. Its output and exit codes are
// tested by the scripts in testdata/script.
//
// Invariant: exit codes are those of command.ExitCodes. An answer is written to standard output
// whole or not at all. Every warning is one line of standard error.
//
// Subcommands: run.go, render*.go, explain.go, matrix.go, analyze*.go, diff*.go, cleanup.go,
// status.go and version.go. Their common parts:
//
//	main.go           the list of subcommands
//	inputs.go         the options of a command, from flags, --config and the running daemon
//	adopt.go          finds the running daemon and its flags
//	config_change.go  how the daemon notices that the file of --config has changed
//	source.go         reads manifests or an API server
//	listing.go        reads an API server, for the commands that read it once
//	first_problem.go  ends such a command with the first problem
//	fromstate.go      reads the state that a daemon has saved
//	skipped.go        warns about objects in manifests that are not used
//	completion.go     completes names in a shell
//
// Where else to look: what run starts, in daemon; what a mode writes, compares (the order of the
// lines of diff) and leaves behind, in driver; /healthz, /livez and /readyz, in health; metrics, in
// metrics; the lines of status, and when a daemon is healthy, in status; Events and warnings about
// Services, in event; the lines of explain, in cmd/inspect/explain; flags, in options; how an API
// server is connected to, and the failover to the next one, in apiserver; how another service proxy
// is suspected, in otherproxy.
//
// Not pure.
package main
