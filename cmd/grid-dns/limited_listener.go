package main

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// limitedListener resets the oldest connection of a client that has too many, or, if all have too
// many, of the client that has most: a new one is always accepted, so no number of idle connections
// keeps others out. This machine's own connections to its own address, such as those of the daemon,
// are limited as one client and do not count in the total.
type limitedListener struct {
	net.Listener
	resets prometheus.Counter
	log    *slog.Logger

	mu     sync.Mutex
	open   map[netip.Addr][]*limitedConn // by client, the oldest first; without those that were reset
	total  int                           // without this machine's own
	logged time.Time
}

func newLimitedListener(l net.Listener, resets prometheus.Counter, log *slog.Logger) *limitedListener {
	return &limitedListener{Listener: l, resets: resets, log: log, open: map[netip.Addr][]*limitedConn{}}
}

// Accept returns the next connection. If there are too many with it, it resets another one.
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	client := addrOf(conn.RemoteAddr())
	c := &limitedConn{Conn: conn, listener: l, client: client, own: client == addrOf(conn.LocalAddr())}
	if excess := l.admit(c); excess != nil {
		if tcp, is := excess.Conn.(*net.TCPConn); is {
			_ = tcp.SetLinger(0) // a reset: nothing of it stays here
		}
		_ = excess.Conn.Close() // whoever serves it ends then
	}
	return c, nil
}

// admit counts a connection. It returns the one that the caller has to reset for it, and that
// does not count any more; nil = there is room.
func (l *limitedListener) admit(c *limitedConn) (excess *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.open[c.client]) >= connectionsOfClientMax:
		excess = l.open[c.client][0]
	case !c.own && l.total >= connectionsMax:
		excess = l.largest()[0]
	}
	if excess != nil {
		l.note(excess)
		l.forget(excess)
	}
	l.open[c.client] = append(l.open[c.client], c)
	if !c.own {
		l.total++
	}
	return excess
}

// largest returns the connections of the client that has most, without this machine's own. The
// caller holds mu.
func (l *limitedListener) largest() (most []*limitedConn) {
	for _, of := range l.open {
		if len(of) > len(most) && !of[0].own {
			most = of
		}
	}
	return most
}

// forget does not count a connection any more, if it is counted. The caller holds mu.
func (l *limitedListener) forget(c *limitedConn) {
	i := slices.Index(l.open[c.client], c)
	if i < 0 {
		return
	}
	if l.open[c.client] = slices.Delete(l.open[c.client], i, i+1); len(l.open[c.client]) == 0 {
		delete(l.open, c.client)
	}
	if !c.own {
		l.total--
	}
}

// note counts a connection that is reset, and logs it, at most once in a resetLogPeriod. The
// caller holds mu.
func (l *limitedListener) note(c *limitedConn) {
	l.resets.Inc()
	if now := time.Now(); l.logged.IsZero() || now.Sub(l.logged) >= resetLogPeriod {
		l.logged = now
		l.log.Warn("reset a TCP connection, because too many are open; the metric grid_dns_tcp_resets_total counts all that are reset",
			"client", c.client, "openOfClient", len(l.open[c.client]), "limitOfClient", connectionsOfClientMax, "open", l.total, "limit", connectionsMax)
	}
}

// addrOf returns the address of a UDP or TCP endpoint; the zero Addr for any other.
func addrOf(a net.Addr) netip.Addr {
	endpoint, is := a.(interface{ AddrPort() netip.AddrPort })
	if !is {
		return netip.Addr{}
	}
	return endpoint.AddrPort().Addr().Unmap()
}

// limitedConn is one that counts until it is closed or reset.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	client   netip.Addr
	own      bool
}

// Close closes the connection, which does not count any more.
func (c *limitedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
