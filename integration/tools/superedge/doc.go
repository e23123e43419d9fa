// Package superedge has no code: this module's go.mod names the version of SuperEdge, whose
// controller apiserver.EnsureSuperEdge builds, so that what it requires is not required of
// gridproxy.
package superedge
