// Package netfilter is the language of iptables that both drivers share: tables, chains and their
// names, rules, their text and its parser, and the names and types of ipsets. Package iptables
// writes rules, package ipvs writes sets and virtual servers, and package trace walks a packet
// through them.
//
// A Rule is a value of one closed struct. The same type is rendered for iptables-restore,
// parsed back from iptables-save, compared with ==, and evaluated on a packet.
//
// Invariant: a Rule that is written and read back is equal to itself. A rule that no Rule can
// express is Foreign, never taken for a Rule that does something else.
//
// The package is pure: it takes texts and values, and neither reads the kernel nor runs a program.
package netfilter
