// Package machines runs a whole Kubernetes cluster with real nodes: the control plane of package
// nodes in a network namespace of its own, and machines that joined it over a bridge. A machine is
// a set of namespaces with one pid 1, containerd, and the real kubelet; its Pods are containers. It
// can be powered off and on, and its link can be cut.
//
// Invariant: nothing outlives the caller, however that ends: no process, mount, namespace, link or control
// group. Everything is written below the cluster's folder, and nothing of the caller's own namespaces is
// changed. Not pure: this is all processes, files and sockets.
package machines
