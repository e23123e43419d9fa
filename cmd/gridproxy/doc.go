// Command gridproxy keeps the traffic of Services inside this node's NodeUnit.
//
// This package has the subcommands. It decides nothing about traffic. Its output and exit codes are
// tested by the scripts in testdata/script.
//
// Invariant: exit codes are those of command.ExitCodes. An answer is written to standard output
// whole or not at all. Every warning is one line of standard error.
//
// Where to look:
//
//   - the list of subcommands: main.go; run.go, render.go, explain.go, matrix.go, analyze.go,
//     diff.go, cleanup.go, status.go, version.go; more of them: render_names.go (names in DNS),
//     diff_run.go (one comparison), analyze_grids.go (the Grids)
//   - the options, from flags, --config and the running daemon, and how the daemon notices that
//     the file of --config has changed: inputs.go; which daemon runs, and its flags: adopt.go
//   - how manifests or an API server are read, and which kinds in manifests are skipped: source.go;
//     one reading of an API server, and what ends it: listing.go; the saved state: fromstate.go
//   - the names that a shell offers: completion.go
//   - times and bounds, such as how long a command waits for an API server: limits.go
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
