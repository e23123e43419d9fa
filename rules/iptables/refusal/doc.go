// Package refusal writes the rules of all other Services although a kernel refuses those of some.
//
// Where to look:
//
//   - what package iptables calls: refusals.go; an input that was refused: error.go
//   - which matches the kernel lacks: ability.go
//   - how it is found out which Services the kernel refuses: search.go; which ones an input adds:
//     suspects.go; how a group is halved: bisect.go; where rules are tried: scratch.go
//   - what is written instead of such a Service: quarantine.go, last_good.go
//   - what the rules in a kernel say of refusals: evidence.go
//
// Invariant: while nothing is refused, Sync is the Sync of its Kernel. A Service is quarantined
// only if the kernel refuses its rules alone.
//
// All but Refusals is pure, and Refusals reads and writes through its Kernel only.
package refusal
