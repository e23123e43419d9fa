// Package refusal writes the rules of all other Services although a kernel refuses those of some.
//
// Where to look:
//
//   - what package iptables calls: refusals.go; an input that was refused: error.go
//   - which matches the kernel lacks: ability.go
//   - which Services the kernel refuses: search.go, suspects.go, bisect.go; where their rules are
//     tried: scratch.go
//   - what is written instead of such a Service: quarantine.go, last_good.go
//   - what the rules in a kernel say of refusals: evidence.go
//
// Invariant: while nothing is refused, Sync is the Sync of its Kernel. A Service is quarantined
// only if the kernel refuses its rules alone.
//
// All but Refusals is pure, and Refusals reads and writes through its Kernel only.
package refusal
