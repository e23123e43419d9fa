// Command grid-dns is the DNS server of one node. It answers for the cluster domain with the
// endpoints that this node may use, and forwards everything else. It has no connection to the API
// server: the daemon of the node tells it what to say.
//
//	main.go     the command line
//	options.go  its flags
//	serve.go    what is started, in which order, and how it ends
//	server.go   CoreDNS, configured in memory
//	limited_listener.go  how many TCP connections are open
//	limited_queries.go   how many queries are under way
//	answers.go  what is answered at the moment
//	check.go    grid-dns check, for probes
//	limits.go   times and bounds
//
// The records and their TTL are in rules/names.
//
// It is a process of its own without NET_ADMIN, because it parses packets of every Pod.
package main
