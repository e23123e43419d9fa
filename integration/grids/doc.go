// Package grids holds the tests of Grids on a real control plane: the reconciler of package controller/grid against a
// real API server, with the rights of deploy/grid-controller.yaml and no others.
package grids
