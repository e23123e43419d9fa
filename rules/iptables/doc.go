// Package iptables spells a rules.Ruleset as the chains that kube-proxy 1.36 writes, and
// keeps the kernel equal to them. In IPVS mode the Ruleset is what virtual servers cannot
// say, and the fixed chains are others: see render_ipvs.go.
//
// A Rule is a value of one closed struct. The same type is rendered to
// iptables-restore, parsed back from iptables-save, compared with ==, and evaluated on a
// packet; repair, diff and trace are that one type looked at from different sides.
//
// Invariant: outside of the chains named in chains.go and of the jumps to them nothing is
// ever written, and a chain of ours that cannot be parsed is rewritten, never trusted.
//
// Render, Parse, Diff and Trace are pure; Backend and Kernel do the I/O.
package iptables
