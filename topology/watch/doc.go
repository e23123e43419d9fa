// Package watch keeps a complete topology.Snapshot current, from an API server or from manifests on
// disk.
//
// Where to look:
//
//   - what a Source is, that of the daemon, its parts and their order, its two followers, and how
//     changes are passed on: chain.go
//   - which objects are read from the API server: cluster.go, and how they are requested:
//     access.go, client.go; when a connection that cannot be made is tried again: connection.go
//     (at the start), reconnect.go (one request)
//   - which changes of an object count, and how lists stay sorted: collection.go
//   - which Nodes are watched, and which labels of this Node are in force: unit_plan.go; which
//     Nodes are one unit: unit.go; which keys Services name: named_keys.go
//   - the running watches for Nodes: node_watches.go; what these know together: unit_nodes.go
//   - Namespaces and Grids, which only DNS needs: name_watches.go
//   - a Snapshot that cannot be true, as of an empty API server, is held back: hold.go; whether
//     objects are missing from a new list: listed.go
//   - endpoints are held after the API server was away: grace.go
//   - when the saved state is in force: remembered.go; when it is saved: saver.go; its files, and
//     which of them is read: store.go
//   - when it is logged that the API server does not answer: outage.go; losses that no request
//     notices: silence.go
//   - which node-local API proxies answer: prober.go
//   - when manifests are read again: manifests.go; which directories are watched for that:
//     folders.go; when the file of --config has changed: file.go
//
// Invariant: a Snapshot exists only after Services, EndpointSlices, this Node and the Nodes of its
// units have all been read, and the objects in it never change. For Nodes of its units it waits at
// most HoldLimit, and on a machine without any rules bootLimit.
// Labels of this Node that changed are in it once the Nodes of the units that they name have been
// read, or after HoldLimit.
//
// Not pure: network, files, clock and log.
package watch
