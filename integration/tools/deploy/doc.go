// Package deploy has no code: this module's go.mod names the version of helm that
// apiserver.EnsureHelm builds, and flux.mod that of Flux's kustomize-controller for
// apiserver.EnsureFlux, so that what they require is not required of gridproxy.
package deploy
