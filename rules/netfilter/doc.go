// Package netfilter is the language of iptables that both drivers speak: tables, chains and
// their names, rules, their text and its parser, and the names and types of ipsets. Package
// iptables writes it, package ipvs writes what its sets and virtual servers are about, and
// package trace walks a packet through it.
//
// A Rule is a value of one closed struct. The same type is rendered for iptables-restore,
// parsed back from iptables-save, compared with ==, and evaluated on a packet.
//
// Invariant: a Rule that is written and read back is equal to itself, and what no Rule can say
// is Foreign, never taken for a Rule that does something else.
//
// The package is pure: it takes texts and values, and neither reads the kernel nor runs a
// program.
package netfilter
