// Package render spells a rules.Ruleset as the chains of kube-proxy 1.37. In IPVS mode the Ruleset
// has only what virtual servers cannot express, and the fixed chains differ.
//
// Where to look:
//
//   - a whole Ruleset, and the fixed chains, with those of local DNS: fixed.go; those of IPVS mode:
//     ipvs.go; the jumps from built-in chains: jumps.go
//   - one Service: service.go; a Service that the kernel refuses: refused.go
//   - a chain of a table: how it is identified, named, compared and written: chains.go
//   - what rendering needs beside a Service: options.go
//   - everything desired, by owner: desired.go; the result, and its text: tables.go
//
// Invariant: an equal Service with equal Options has equal rules. So nothing that was rendered has
// to be kept: Desired renders it again.
//
// The package is pure. Package netfilter has the rules, their text and its parser.
package render
