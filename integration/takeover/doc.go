// Package takeover tests what happens on a node where a real kube-proxy has written its rules and
// gridproxy comes after it: nothing is rewritten but what closure changes, and nobody's connection ends.
//
// Invariant: what kube-proxy wrote is read from the kernel, never written by the test. The tools that
// gridproxy runs are counted by standing in front of them, so that it need not know of being watched.
package takeover
