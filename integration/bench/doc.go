// Command bench compares gridproxy with the real kube-proxy: the same API server, the same objects, the
// same machine, one after the other in network namespaces of their own. It prints a Markdown table of
// medians and ratios to standard output, and what it is doing to standard error.
//
// Invariant: what is timed is seen from outside, by packets that arrive or do not; neither program is
// asked how long it thinks it took. Both are configured to react at once (no minimal period between
// syncs).
//
// With -ipvs first, it measures gridproxy in its two modes against kube-proxy in IPVS mode on one
// kernel. That is made to be run by vmexec, on a kernel that has IPVS: make bench-ipvs. All three
// programs watch the same fake API server (need.FakeAPI), because a real one starves on an emulated
// processor. So what is compared is the work on the node. Times on an emulated processor say
// nothing alone; ratios of one run do. Each program has a node of its own, so none finds another's
// rules.
//
// With -grids first, it measures grid-controller on a real API server, against a program that
// applies the same children and does nothing else.
//
// With -dns first, it measures grid-dns against CoreDNS: as the DNS of a cluster, with its
// kubernetes plugin and the same API server, and as the cache of a node. All run in one network
// namespace, and take turns in answering the same load of dnsperf. A ratio is the median of the
// rounds' ratios: other programs on the machine disturb a round, not all of them.
package main
