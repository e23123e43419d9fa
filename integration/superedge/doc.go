// Package superedge proves docs/migrate-from-superedge.md: its commands, taken from the document,
// are run against a cluster that SuperEdge's own controller of Grids has kept, and against
// definitions of NodeUnits and NodeGroups as SuperEdge's site-manager installs them, with a webhook
// that does not answer.
//
// Invariant: nothing of SuperEdge outlives a test, and no file of it exists outside the user's
// cache and the test's folder. Not pure: processes, a mount namespace, an API server.
package superedge
