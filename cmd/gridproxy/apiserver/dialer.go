package apiserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gridproxy/topology/watch"

	"golang.org/x/sys/unix"
)

// Dialer connects to one of several API servers: to the server that is in use, if there is one,
// else to the next ones in order. Names are resolved for each connection.
type Dialer struct {
	servers []string // HOST:PORT
	log     *slog.Logger
	delay   time.Duration // until the next server is tried in parallel
	connect connect

	mu     sync.Mutex
	first  int           // index of the server that the next connection tries first
	states []serverState // by server
}

// connect opens a connection, as net.Dialer.DialContext does.
type connect func(ctx context.Context, network, addr string) (net.Conn, error)

// serverState is what is known of one server.
type serverState struct {
	open     map[*connection]struct{} // connections that are not closed yet
	failures failures
	left     bool // abandoned for its answers, with no good answer since
}

// New makes a Dialer for servers, at least one, each as HOST:PORT. It logs when it abandons a
// server for its answers, and when that server works again.
func New(servers []string, log *slog.Logger) *Dialer {
	return newDialer(servers, log, nextServerDelay, open)
}

// open makes a connection whose end the kernel detects soon.
func open(ctx context.Context, network, address string) (net.Conn, error) {
	return withTimeouts(watch.ConnectLimit(address)).DialContext(ctx, network, address)
}

func withTimeouts(limit time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         limit,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepaliveDelay, Interval: keepalivePeriod, Count: keepaliveProbesMax},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledgedTimeout/time.Millisecond))
			}), err)
		},
	}
}

func newDialer(servers []string, log *slog.Logger, delay time.Duration, connect connect) *Dialer {
	states := make([]serverState, len(servers))
	for i := range states {
		states[i].open = map[*connection]struct{}{}
	}
	return &Dialer{servers: servers, log: log, delay: delay, connect: connect, states: states}
}

// attempt is the result of connecting to one server.
type attempt struct {
	server int
	conn   net.Conn
	err    error
}

// Dial connects to a server. It ignores the address that it is given. The next server is tried
// as soon as one has failed, and in parallel if one has not answered for a while. The first
// connection wins. It returns an error once all servers have failed.
func (d *Dialer) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, done := context.WithCancel(ctx)
	defer done() // an established connection does not depend on it
	tried := make(chan attempt, len(d.servers))
	first, started := d.start(), 0
	begin := func() {
		if started == len(d.servers) {
			return
		}
		server := (first + started) % len(d.servers)
		started++
		go func() {
			conn, err := d.connect(ctx, network, d.servers[server])
			tried <- attempt{server, conn, err}
		}()
	}
	begin()
	next := time.NewTicker(d.delay)
	defer next.Stop()
	var failed []error
	for len(failed) < len(d.servers) {
		select {
		case <-next.C:
			begin()
		case a := <-tried:
			if a.err == nil {
				conn := d.settle(a)
				go closeLate(tried, started-len(failed)-1)
				return conn, nil
			}
			failed = append(failed, a.err)
			begin()
		}
	}
	return nil, fmt.Errorf("no API server of --api-servers %s can be reached: %w", strings.Join(d.servers, ","), errors.Join(failed...))
}

// closeLate waits for n more results, and closes the connections that they bring.
func closeLate(tried <-chan attempt, n int) {
	for range n {
		if a := <-tried; a.err == nil {
			_ = a.conn.Close()
		}
	}
}

func (d *Dialer) start() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.first
}

func (d *Dialer) settle(a attempt) *connection {
	c := &connection{Conn: a.conn, dialer: d, server: a.server}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = a.server
	d.states[a.server].open[c] = struct{}{}
	return c
}

// leave removes a connection that ends. The next connection tries the next server first, unless
// another server is in use already, or this one has answered and has other connections: net/http
// opens more connections than it needs, and closes the surplus.
func (d *Dialer) leave(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := d.states[c.server].open
	delete(open, c)
	if len(open) == 0 || !c.answered.Load() {
		d.pass(c.server)
	}
}

// pass makes the next connection try the server after this one first, unless another is in use
// already. The caller holds d.mu.
func (d *Dialer) pass(server int) {
	if d.first == server {
		d.first = (server + 1) % len(d.servers)
	}
}

// heard records a server's answer to a read. A server that fails too often is abandoned: all of its
// connections are closed, those of watches too, so that the next request goes to another server.
// The caller must pause after a failure, as client-go does. Nothing else slows down the failover
// between servers that all fail.
func (d *Dialer) heard(server int, a answer) {
	for _, c := range d.judge(server, a) {
		_ = c.Close() // its error does not matter any more
	}
}

// judge records an answer, and returns the connections that must be closed: all of the server
// if it is abandoned, else none. It logs that, and when an abandoned server works again.
func (d *Dialer) judge(server int, a answer) []*connection {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.states[server]
	s.failures = s.failures.and(a)
	if a.good() && s.left {
		s.left = false
		d.log.Info("an abandoned API server answers again", "server", d.servers[server])
	}
	if !s.failures.condemn() {
		return nil
	}
	s.failures = nil
	if !s.left {
		s.left = true
		d.log.Warn("an API server answers only with errors, or too late (504), so the next one of --api-servers is used; repair it, or remove it from the list",
			"server", d.servers[server], "path", a.path, "status", a.status)
	}
	d.pass(server)
	return slices.Collect(maps.Keys(s.open))
}

// connection is a connection to a server. Why it ends is not known here: the server closed it or
// had the wrong certificate, HTTP/2 detected that the server does not answer, or the server was
// abandoned.
type connection struct {
	net.Conn
	dialer   *Dialer
	server   int
	answered atomic.Bool // the server has sent something, if only TLS
	left     sync.Once
}

// Read reads what the server sends, and notes that it has answered.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, err
}

// Close closes the connection, and removes it from the Dialer.
func (c *connection) Close() error {
	c.left.Do(func() { c.dialer.leave(c) })
	return c.Conn.Close()
}
