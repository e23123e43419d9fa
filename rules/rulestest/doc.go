// Package rulestest draws random Rulesets and random changes to them, for property tests of
// backends.
//
// Invariant: what it draws is valid. Every Service comes from rules.Compile, no two Frontends have
// the same address, port and protocol, and all names are legal.
package rulestest
