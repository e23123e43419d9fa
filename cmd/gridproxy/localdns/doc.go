// Package localdns is the daemon's side of the DNS server on its node: it tells it what DNS says,
// and finds out whether it answers.
//
//	node.go        publishes the names after each change, and reports where queries go
//	server.go      the socket of the feed, and what is published there
//	client.go      one DNS server that is connected
//	alive.go       whether DNS on this node may be left to them; pure
//	backoff.go     how long servers must be well before DNS goes back to them; pure
//	redirector.go  leads queries to them while they are well
//	flows.go       ends flows of queries that went elsewhere, and says which
//	listeners.go   reports other processes that listen at their addresses
//	limits.go      times and bounds
//
// Invariant: a DNS server counts as alive only by what it did lately: it reported, it has the names
// of a few seconds ago, and it answered, the daemon or others. One that is connected and does
// nothing counts for all of them, because the kernel goes on giving it a share of the queries.
package localdns
