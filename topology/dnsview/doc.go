// Package dnsview is what DNS says about Services on one node: the values that package topology
// decides, and that the DNS server answers from.
//
// Invariant: it imports nothing of the API of Kubernetes but names. The DNS server, which links
// this package and not the decision, is smaller by a third for it.
//
// Pure: values only.
package dnsview
