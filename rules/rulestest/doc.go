// Package rulestest draws random Rulesets, and random changes to them, for property tests
// of everything that enforces one.
//
// Invariant: what it draws is valid. Every Service comes out of rules.Compile, no two
// Frontends answer on the same address, port and protocol, and all names are legal.
package rulestest
