// Package noderuntime has no code: this module's go.mod names the versions of containerd, runc and the network plugins
// that apiserver.EnsureNodeRuntime builds, so that what they require is not required of gridproxy.
package noderuntime
