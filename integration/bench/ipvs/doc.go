// Command ipvs measures gridproxy in its two modes against kube-proxy in IPVS mode, one after the other
// on one kernel, and prints ratios. It is made to be run by vmexec, on a kernel that has IPVS:
//
//	make bench-ipvs
//
// All three watch the same fake API server (integration/fakeapi), because a real one starves on an
// emulated processor. So what is compared is the work on the node. Times on an emulated processor say
// nothing by themselves; ratios of one run do.
//
// Each program has a node of its own, so none finds another's rules.
package main
