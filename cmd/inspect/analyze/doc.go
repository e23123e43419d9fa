// Package analyze makes the answer of `gridproxy analyze` and `kubectl grid analyze`: what is wrong
// with closed Services, with the labels of Nodes and with Grids.
//
//	code.go        the table of codes; docs/findings.md has a section for each
//	finding.go     what a finding says, and the report that they make
//	analyze.go     in which order is looked for findings
//	annotation.go  annotations and fields of Services
//	label.go       label keys and Nodes
//	endpoint.go    endpoints and units
//	key_group.go   which Services are looked at together, and for how many
//	address.go     addresses that another Service, an API server or a Node's DNS has
//	grid.go        keys and templates of Grids
//	print.go       prints the report in a format: text, or SARIF 2.1.0 for code review tools
//	fail_on.go     for which findings a command fails
//
// Invariants: a code never changes its meaning, and a code that is no longer used is not given
// again. The same objects in another order have the same report. What decides about endpoints and
// addresses is topology.Resolve, package matrix and rules.Compile; about Grids it is
// gridspec.Spec.Mistakes. Nothing is decided here.
//
// A report has at most MaxPerCode findings of a code, shared out among namespaces, so that the
// mistakes in one namespace do not hide those in another.
//
// The package is pure.
package analyze
