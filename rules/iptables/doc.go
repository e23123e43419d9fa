// Package iptables spells a rules.Ruleset as the chains that kube-proxy 1.36 writes, and
// keeps the kernel equal to them. In IPVS mode the Ruleset is what virtual servers cannot
// say, and the fixed chains are others: see render_ipvs.go.
//
// Invariant: outside of the chains that netfilter.Naming.IsOurs names and of the jumps to them
// nothing is ever written, and a chain of ours that cannot be parsed is rewritten, never trusted.
//
// Render and its parts are pure; Backend, Shadow and Cleaner do the I/O. The rules themselves,
// their text and its parser are package netfilter's.
package iptables
