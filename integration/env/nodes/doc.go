// Package nodes runs a whole Kubernetes cluster for the tests of the Grids: the control plane of
// package apiserver with the real controller manager and scheduler, and in the place of machines
// one set of stand-ins, Kubelets, that keep Nodes alive and report Pods as running. A Deployment
// gets its Pods, a Service its EndpointSlices, an owner's deletion is cascaded, all by Kubernetes'
// own code. What does not exist is a container: nothing answers at the address of a Pod.
//
// Invariant: nothing outlives the test, however it ends, and every file is in the cluster's folder;
// see package apiserver. Not pure: this is all processes and requests.
package nodes
