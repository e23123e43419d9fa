// Package sites proves NodeUnits and NodeGroups on a real API server: the two CRDs and their rules, and the
// controller that puts labels, annotations and taints on Nodes.
//
// Not pure: it starts etcd and kube-apiserver through package apiserver.
package sites
