// Package helm has no code: this module's go.mod names the version of helm that
// apiserver.EnsureHelm builds, so that what helm requires is not required of gridproxy.
package helm
