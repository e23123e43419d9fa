// Package deploy carries the manifests that a program needs to have with it: the CustomResourceDefinitions, as they
// were generated when the program was built.
//
// Invariant: it holds what kubectl apply --server-side -f deploy/crds installs, byte by byte. Pure.
package deploy
