// Package cost counts what a change costs in IPVS mode: the netlink messages by which virtual servers,
// set entries and addresses change, and the bytes that the iptables tools are given to restore. What
// must hold: the counts of one change do not depend on how many Services there are.
//
// It holds tests only. They need root, the iptables tools and a kernel with IPVS: run them by vmexec.
// The tools are counted by standing before them in PATH.
package cost
