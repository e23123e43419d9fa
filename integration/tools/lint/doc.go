// Package lint has no code: this module's go.mod names the version of golangci-lint that the suite
// lint runs, so that what it requires is not required of gridproxy.
package lint
