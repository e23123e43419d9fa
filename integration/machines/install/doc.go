// Package install installs the chart on a cluster of real machines with the real helm, by the commands that an
// administrator types: over SuperEdge's definitions and objects, and on an empty cluster; upgrades it, removes it and installs
// it again; and does the same with the plain manifests. What users have made must survive all of it.
//
// Invariant: nothing but helm, kubectl and grid-controller changes the cluster. Not pure.
package install
