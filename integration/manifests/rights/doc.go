// Package rights shows that the programs work with exactly the rights of the manifests: with all of them nothing is
// refused and everything is done, and without any single one something is refused. It also holds docs/security.md
// to the manifests.
//
// Invariant: a right that stands in deploy/ and that nothing asked for fails a test, as does one that is missing. Not
// pure: it reads the manifests; its tests run control planes, the daemon and the controller.
package rights
