// Package chart runs the real helm on deploy/charts/gridproxy, and says what the plain manifests in deploy are: the
// chart's own, for values that a reader can recognise and replace.
//
// Invariant: helm gets folders of its own for what it remembers, so that no user's configuration
// of helm is read or written. Not pure: this starts programs.
package chart
