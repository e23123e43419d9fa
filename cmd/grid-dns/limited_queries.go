package main

import (
	"context"
	"net/netip"
	"sync"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// How many queries are under way at once, at all addresses together. A query of an outside name is
// under way until an upstream has answered, which takes up to upstreams.Limit.
const (
	maxQueries         = 1024
	maxQueriesOfClient = 256 // of one source address; a full socket buffer has about as many
	// From busyQueries on, a client may have fewQueries: clients with more take no more than this.
	busyQueries = maxQueries * 3 / 4
	fewQueries  = 16
)

// limitedQueriesName is what CoreDNS calls the plugin.
const limitedQueriesName = "limitedqueries"

// limitedQueries is the first plugin. It drops the queries that are too many, before any work is
// done for them.
type limitedQueries struct {
	next    plugin.Handler
	dropped prometheus.Counter

	mu       sync.Mutex
	ofClient map[netip.Addr]int // queries under way; without clients that have none
	total    int
}

func newLimitedQueries() *limitedQueries {
	return &limitedQueries{ofClient: map[netip.Addr]int{}, dropped: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "grid_dns_dropped_queries_total", Help: "Queries that were dropped, because too many of the client, or of all clients, were under way.",
	})}
}

// Name returns the name of the plugin.
func (l *limitedQueries) Name() string { return limitedQueriesName }

// ServeDNS gives a query to the next plugin, or drops it: the client gets no answer, and asks again
// later.
func (l *limitedQueries) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	client := addrOf(w.RemoteAddr())
	if !l.admit(client) {
		l.dropped.Inc()
		return dns.RcodeSuccess, nil // for which CoreDNS sends nothing
	}
	defer l.release(client)
	return l.next.ServeDNS(ctx, w, r)
}

// admit counts a query, or reports that there is no room for it.
func (l *limitedQueries) admit(client netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := maxQueriesOfClient
	if l.total >= busyQueries {
		limit = fewQueries
	}
	if l.total >= maxQueries || l.ofClient[client] >= limit {
		return false
	}
	l.ofClient[client]++
	l.total++
	return true
}

// release counts a query of a client no longer.
func (l *limitedQueries) release(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.ofClient[client]--; l.ofClient[client] == 0 {
		delete(l.ofClient, client)
	}
}
