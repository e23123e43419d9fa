// Package apiserver runs a real Kubernetes control plane for tests and benchmarks: etcd and
// kube-apiserver, on demand kube-controller-manager and kube-scheduler, and kube-proxy to be compared
// with, each a child process of the caller.
//
// All of them are one binary, built once from the nested module integration/tools/kubernetes and
// kept in the user's cache folder by the hash of everything that decides its contents.
//
// Invariant: nothing outlives the caller. A child dies with Close, and with the process that
// started it however that ends; files are only ever written inside the folder that the caller gives
// and the cache folder. Not pure: this is all processes, files and sockets.
package apiserver
