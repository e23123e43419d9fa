// Package kernel tests the gridproxy program on real kernels: one `gridproxy run` per node
// of a lab, manifests as its source, and real packets from Pods, nodes and outside, with
// iptables-nft and iptables-legacy, over IPv4 and IPv6.
//
// It holds tests only. They need root and the iptables tools, touch no other namespace
// than their own, and wait for what they want to see instead of for time to pass.
package kernel
