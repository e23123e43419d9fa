// Package command is what the command lines of our programs share: how a program runs and exits,
// how it prints an answer, how it logs, and how it was built.
//
// Where to look: command.go, exit codes and error output; output.go, the formats of an answer;
// signals.go, SIGTERM and SIGHUP; logging.go; build.go, the version; completion.go, the scripts for
// shells and the words of flags; candidates.go, the names that a shell offers, and their bounds;
// object_names.go, names from an API server; man.go, man pages.
//
// Invariant: exit code 0 means success, 1 invalid input or a failure, 2 an invalid command line,
// unless an error has its own code. Every problem is printed to standard error, one per line.
//
// Not pure: Main and BridgeKlog change the process. Everything else works on its arguments.
package command
