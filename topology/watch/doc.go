// Package watch keeps a complete topology.Snapshot current, from an API server or from manifests on
// disk.
//
// Where each decision is taken:
//
//	connection.go    when a connection that cannot be made is tried again
//	cluster.go       which objects are read from the API server
//	unit_plan.go     which Nodes are watched, and which labels of this Node are in force
//	named_keys.go    which topology keys Services name
//	unit_nodes.go    what several watches for Nodes know together
//	node_watches.go  runs these watches
//	name_watches.go  what only DNS needs
//	client.go        the clients, which know the kinds that are needed alone
//	collection.go    which changes of an object count, and how lists stay sorted
//	hold.go          when a Snapshot is held back because it cannot be true
//	remembered.go    when the saved state is in force
//	grace.go         when the API server was away, so that endpoints are held
//	saver.go         when the state is saved
//	store.go         the files of the saved state, and which of them is read
//	prober.go        which node-local API proxies answer
//	outage.go        when it is logged that the API server does not answer
//	silence.go       which losses are found that no request notices
//	manifests.go     when manifests are read again
//	folders.go       which directories are watched for that
//
// Invariant: a Snapshot exists only after Services, EndpointSlices, this Node and the Nodes of its
// units have all been read, and the objects in it never change. For Nodes of its units it waits at
// most HoldLimit, and on a machine without any rules bootLimit.
// Labels of this Node that changed are in it once the Nodes of the units that they name have been
// read, or after HoldLimit.
//
// Not pure: network, files, clock and log.
package watch
