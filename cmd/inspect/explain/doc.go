// Package explain makes the answer of `gridproxy explain`: for every endpoint of one Service,
// whether this node uses it, and if not, why.
//
// Invariant: each endpoint that an EndpointSlice has for a port of the Service appears once. It is
// kept if and only if the View has it and some address of the Service leads to it.
//
//	explanation.go  the endpoints with their reasons, and the lines about virtual servers, which
//	                package driver finds
//	notes.go        the notes about addresses that another Service has, about rules that this
//	                kernel refuses, and about keys that no Node has
//	table.go        prints the answer: the order and the wording of its lines
//	names.go        parses the name of the Service, and suggests similar ones
//
// A Summary is such an answer in one line, for many Services or many nodes; its endpoints are those
// of the answer:
//
//	summary.go   what of an answer a line says, and its tables
//	services.go  goes through the Services of a Snapshot or a View
//
// A DNSAnswer is what DNS says about one name, with the Service of the name and what is left out:
//
//	dns_question.go  parses the name, finds its Service, and says why a port has none
//	dns_answer.go    the records, and their table
//
// The package is pure.
package explain
