package main

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"gridproxy/topology/dnsfeed"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
)

// limitedQueriesName is what CoreDNS calls the plugin.
const limitedQueriesName = "limitedqueries"

// limitedQueries is the first plugin. It drops the queries that are too many, before any work is
// done for them, and counts the answers to the others.
type limitedQueries struct {
	next     plugin.Handler
	dropped  prometheus.Counter
	answered map[netip.Addr]*answerCount // by the address of this server; the map never changes

	mu       sync.Mutex
	ofClient map[netip.Addr]int // queries under way; without clients that have none
	total    int                // without those of this address
}

type answerCount struct{ udp, tcp atomic.Uint64 }

func newLimitedQueries(addrs []netip.Addr) *limitedQueries {
	answered := map[netip.Addr]*answerCount{}
	for _, addr := range addrs {
		answered[addr] = &answerCount{}
	}
	return &limitedQueries{answered: answered, ofClient: map[netip.Addr]int{}, dropped: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "grid_dns_dropped_queries_total", Help: "Queries that were dropped, because too many of the client, or of all clients, were under way.",
	})}
}

// Name returns the name of the plugin.
func (l *limitedQueries) Name() string { return limitedQueriesName }

// ServeDNS gives a query to the next plugin, or drops it: the client gets no answer, and asks again
// later. A query that CoreDNS asks itself for an admitted one, such as the target of a CNAME, needs
// no second place.
func (l *limitedQueries) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if loop, _ := ctx.Value(dnsserver.LoopKey{}).(int); loop > 0 {
		return l.next.ServeDNS(ctx, w, r)
	}
	client := addrOf(w.RemoteAddr())
	own := client == addrOf(w.LocalAddr())
	if !l.admit(client, own) {
		l.dropped.Inc()
		return dns.RcodeSuccess, nil // for which CoreDNS sends nothing
	}
	defer l.release(client, own)
	return l.next.ServeDNS(ctx, l.counting(w), r)
}

// counting returns a writer that counts the answers to one query.
func (l *limitedQueries) counting(w dns.ResponseWriter) dns.ResponseWriter {
	local := w.LocalAddr()
	count, found := l.answered[addrOf(local)]
	if !found {
		return w
	}
	if _, isTCP := local.(*net.TCPAddr); isTCP {
		return &countingWriter{w, &count.tcp}
	}
	return &countingWriter{w, &count.udp}
}

// answeredAt returns the counts of addresses of this server, in their order, without waiting.
func (l *limitedQueries) answeredAt(all []netip.AddrPort) (counts []dnsfeed.Answered) {
	for _, at := range all {
		count := l.answered[at.Addr()]
		counts = append(counts, dnsfeed.Answered{UDP: count.udp.Load(), TCP: count.tcp.Load()})
	}
	return counts
}

// countingWriter counts the messages that answer a query.
type countingWriter struct {
	dns.ResponseWriter
	count *atomic.Uint64
}

// WriteMsg sends a message, and counts it unless it says that the server fails or refuses.
func (w *countingWriter) WriteMsg(m *dns.Msg) error {
	err := w.ResponseWriter.WriteMsg(m)
	if err == nil && (m.Rcode == dns.RcodeSuccess || m.Rcode == dns.RcodeNameError) {
		w.count.Add(1)
	}
	return err
}

// admit counts a query and returns true, or returns false if there is no room for it. Those of
// this address, for which own is true, do not count in the total.
func (l *limitedQueries) admit(client netip.Addr, own bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := queriesOfClientMax
	switch {
	case own:
		limit = queriesOfDaemonMax
	case l.total >= queriesMax:
		return false
	case l.total >= queriesBusy:
		limit = queriesOfClientBusyMax
	}
	n := l.ofClient[client]
	if n >= limit {
		return false
	}
	l.ofClient[client] = n + 1
	if !own {
		l.total++
	}
	return true
}

// release counts a query of a client no longer.
func (l *limitedQueries) release(client netip.Addr, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !own {
		l.total--
	}
	if n := l.ofClient[client] - 1; n > 0 {
		l.ofClient[client] = n
	} else {
		delete(l.ofClient, client)
	}
}
