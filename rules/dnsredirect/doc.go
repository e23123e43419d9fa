// Package dnsredirect leads the queries of this machine to the DNS server on it, and back.
//
//	entry.go     which addresses and ports are led there; pure
//	redirect.go  the order of work
//	set.go       the ipset in which they stand
//	address.go   the server's own addresses, on the loopback interface
//	listener.go  which processes take queries there
//
// The rules that lead there are those of every mode (rules.LocalDNS). They match an ipset, and so
// an entry of it is the switch: no rule is written, nothing waits for a sync, and entries that are
// not renewed end automatically after Expire. A machine whose processes have all died asks the
// cluster's DNS again.
//
// Invariant: an entry has been renewed by this process within Expire, unless Permanent was asked
// for. No address is removed from the interface but those that are asked for.
package dnsredirect
