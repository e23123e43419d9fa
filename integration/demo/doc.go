// Command demo shows on one machine what gridproxy does: six nodes in two units, one
// Service, one gridproxy per node, and who answers whom; then a node moves to the other
// unit. It exits 1 if one request left its unit or was not answered, and leaves nothing
// behind; with -keep only the manifests, in a folder of the user's choice.
//
// With -machines it is `make cluster-demo`: a control plane and four machines in two units, on this
// computer; the chart, as helm renders it; the Grids of deploy/samples/stateless; and who is
// answered by whom.
//
// Invariant: it leaves nothing else behind, after Ctrl-C either. Not pure: this is all processes.
package main
