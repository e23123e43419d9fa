// Command demo is `make cluster-demo`: a control plane and four machines in two units, on this computer; the chart,
// as helm renders it; the Grids of deploy/samples/stateless; and who is answered by whom.
//
// Invariant: it leaves nothing behind, after Ctrl-C either. Not pure: this is all processes.
package main
