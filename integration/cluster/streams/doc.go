// Package streams tests gridproxy where it is at home: as a DaemonSet on the machines of a real cluster,
// two with each variant of iptables, in the place of a real kube-proxy. While gridproxy takes over, is
// killed, rolled out, loses the API server and is removed again, 100 short connections a second and many
// open ones go on, from Pods, from machines and from outside, by both families, and none of them is
// lost. On the same cluster it tests closure, and prints what daemons cost beside kube-proxy.
//
// It holds one test of a cluster only, whose steps build on each other: a cluster takes longer to start than most
// of them.
//
// Invariants: every connection that was begun is answered for, during an event and between two; what is about speed
// is printed, and fails nothing. Not pure: this is all processes and packets.
package streams
