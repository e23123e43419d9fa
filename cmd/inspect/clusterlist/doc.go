// Package clusterlist lists all objects of a kind from an API server, for commands that answer one
// question.
//
//	each.go   lists one kind in pages
//	grids.go  lists Grids, whose definitions a cluster need not have, and what a hub has of other
//	          clusters
//
// Invariant: an answer has all objects of a kind, or is an error, within listTimeout.
//
// Not pure: network.
package clusterlist
