// Package watch keeps a whole topology.Snapshot current, from an API server or from
// manifests on disk.
//
// Invariant: a Snapshot is handed out only once Services, EndpointSlices and Nodes have
// all been read, and the objects in it are never changed afterwards.
package watch
