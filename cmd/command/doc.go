// Package command is what the command lines of our programs share: how a program runs and exits,
// how it prints an answer, how it logs, and how it was built.
//
// Where to look:
//
//   - how a program runs, prints an error, logs, and treats signals: command.go; the table of
//     exit codes: exit_codes.go
//   - the formats of an answer, and when it has colours: output.go; what a command waits for:
//     progress.go
//   - how the program was built, and the subcommand version: build.go
//   - completion in a shell: completion.go (scripts, words of flags), candidates.go (names, and
//     their bounds)
//   - paths and addresses that several daemons take: bounds.go; the flags of SuperEdge:
//     superedge.go
//   - times and bounds: limits.go
//
// Invariant: the same kind of end has the same exit code in all commands, and every help text has
// its codes. Every problem is printed to standard error, one per line.
//
// Not pure: Main changes the process; PrintAs and Waiting read the environment, and ask whether
// their writer is a terminal; CompleteNames waits. Everything else works on its arguments.
package command
