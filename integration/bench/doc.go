// Command bench compares gridproxy with the real kube-proxy: the same API server, the same objects, the
// same machine, one after the other in network namespaces of their own. It prints a Markdown table of
// medians and ratios to standard output, and what it is doing to standard error.
//
// Invariant: what is timed is seen from outside, by packets that arrive or do not; neither program is
// asked how long it thinks it took. Both are configured to react at once (no minimal period between
// syncs).
package main
