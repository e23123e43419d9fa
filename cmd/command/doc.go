// Package command is what the command lines of our programs share: how a program runs and exits,
// how it prints an answer, how it logs, and how it was built.
//
// Where to look: command.go, error output; exit_codes.go, the table of exit codes; output.go, the
// formats of an answer; bounds.go, paths and addresses that several daemons take; signals.go,
// SIGTERM and SIGHUP; superedge.go, the flags of SuperEdge; logging.go; build.go, the version;
// completion.go, the scripts for shells and the words of flags; candidates.go, the names that a
// shell offers, and their bounds; terminal.go, when there are colours; progress.go, what a command
// waits for.
//
// Invariant: the same kind of end has the same exit code in all commands, and every help text has
// its codes. Every problem is printed to standard error, one per line.
//
// Not pure: Main changes the process; PrintAs and Waiting read the environment, and ask whether
// their writer is a terminal; CompleteNames waits. Everything else works on its arguments.
package command
