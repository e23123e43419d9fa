// Package fakeapi is a stand-in for an API server: lists and watches of Services, EndpointSlices and
// Nodes out of memory, over plain HTTP, and Events that nobody keeps.
//
// It is a fake. A real API server with its etcd is too heavy for an emulated processor, where it takes
// minutes to start and then starves what is tested; the tests that run without a virtual machine have
// the real one, from integration/controlplane. What this one lacks: authentication, storage, admission,
// status and other subresources, writes over HTTP, continued lists and old resource versions. A watch
// does not notice that an object begins or ends to match its selector.
//
// What must hold: whoever lists and then watches from the list's resource version misses nothing and
// hears everything in the order in which it was Put.
//
// Not pure: it serves a listener.
package fakeapi
