// Package dnsquery asks a DNS server on this node one question, as the daemon and the probes of the
// server do.
//
// Not pure: it is one exchange over the network, with a limit.
package dnsquery
