// Package rules turns a topology.View into what the node must enforce, naming no kernel
// mechanism.
//
// Every question of traffic policy, masquerading, source ranges and verdicts is decided
// here, once; a backend only spells the answer.
//
// Invariant: a Frontend without a usable endpoint in the unit is refused, and two
// Frontends of a Ruleset never match the same packet in the same way.
//
// The package is pure: values in, values out.
package rules
