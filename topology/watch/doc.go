// Package watch keeps a complete topology.Snapshot current, from an API server or from manifests on
// disk.
//
// Where each decision is taken:
//
//	cluster.go     which objects are read from the API server
//	collection.go  which changes of an object count, and how lists stay sorted
//	hold.go        when a Snapshot is held back because it cannot be true
//	outage.go      when it is logged that the API server does not answer
//	manifests.go   when manifests are read again
//	folders.go     which directories are watched for that
//
// Invariant: a Snapshot exists only after Services, EndpointSlices and Nodes have all been read,
// and the objects in it never change.
//
// Not pure: network, files, clock and log.
package watch
