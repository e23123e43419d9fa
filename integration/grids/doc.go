// Package grids holds the tests of Grids on a real control plane: the reconciler of package
// controller/grid against a real API server, with the rights of deploy/grid-controller.yaml and no
// others, and what that API server accepts, refuses, keeps and shows with the definitions of
// deploy/crds. With Flux and several control planes they are also about the distribution of Grids.
//
// Invariant: the definitions and the samples are applied as users apply them, by kubectl from the
// folders of deploy. Not pure: processes and sockets. Nothing but tests.
package grids
