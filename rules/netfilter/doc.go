// Package netfilter is the language of iptables that both drivers share: tables, chains and their
// names, rules, their text and its parser, and the names and types of ipsets. Package iptables
// writes rules, package ipvs writes sets and virtual servers, and package trace walks a packet
// through them.
//
// A Rule is a value of one closed struct. The same type is rendered for iptables-restore,
// parsed back from iptables-save, compared with ==, and evaluated on a packet.
//
// Where to look:
//
//   - what a rule can be, its protocols, marks and matches: rule.go
//   - a rule or a table as text, for iptables-restore: text.go
//   - that text read back: saved.go (all tables), parse.go (lines), parse_rule.go (one rule),
//     parse_option.go (the options that a Rule can express)
//   - names of the fixed chains, and which names are a service proxy's or a Service's: chains.go;
//     the prefix KUBE- or GRID-: naming.go; names and types of the ipsets: sets.go
//   - which tables, in which order; IPv4 and IPv6; nft or legacy: table.go
//   - the output of diff: unified.go
//
// Invariant: a Rule that is written and read back is equal to itself. A rule that no Rule can
// express is Foreign, never taken for a Rule that does something else.
//
// The package is pure: it takes texts and values, and neither reads the kernel nor runs a program.
package netfilter
