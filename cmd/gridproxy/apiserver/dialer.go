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

	"golang.org/x/sys/unix"
)

const (
	// patience is how long a server may take to answer before the next one is tried beside it.
	patience = time.Second
	// giveUp is how long one may take at all.
	giveUp = 30 * time.Second
	// late is when a read without an answer is a timeout. A kube-apiserver ends most reads after a
	// minute, then without a word; without its etcd it lets a watch wait for as long as that may last.
	late = 50 * time.Second

	// A server that vanishes without a word, its power or link cut, is noticed by the kernel
	// after idle and probes of TCP, or by what it does not acknowledge, long before HTTP/2 does.
	idle         = 10 * time.Second
	probeEvery   = 5 * time.Second
	probes       = 2
	unconfirmed  = 20 * time.Second
	milliseconds = int(unconfirmed / time.Millisecond)
)

// Dialer connects to one of several API servers: to the one that it is connected with, if any,
// else to the others in turn. Names are resolved for each connection.
type Dialer struct {
	servers  []string // HOST:PORT
	log      *slog.Logger
	patience time.Duration
	late     time.Duration
	connect  func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	first  int           // into servers: where the next connection is tried first
	states []serverState // by server
}

// serverState is how one server does.
type serverState struct {
	open     map[*connection]struct{} // those that have not been closed
	failures failures
	left     bool // for its answers; none has been good since
}

// New makes a Dialer for servers, one at least, each as HOST:PORT. The log is told of each one
// that is left for its answers, and when it answers well again.
func New(servers []string, log *slog.Logger) *Dialer {
	d := &net.Dialer{
		Timeout:         giveUp,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: probeEvery, Count: probes},
		Control: func(_, _ string, c syscall.RawConn) error {
			var err error
			return errors.Join(c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, milliseconds)
			}), err)
		},
	}
	states := make([]serverState, len(servers))
	for i := range states {
		states[i].open = map[*connection]struct{}{}
	}
	return &Dialer{servers: servers, log: log, patience: patience, late: late, connect: d.DialContext, states: states}
}

// attempt is how a connection to one server went.
type attempt struct {
	server int
	conn   net.Conn
	err    error
}

// Dial connects to a server, whatever address it is given. The next server is tried as soon as
// one has failed, and beside those that have not answered yet after a while; the first
// connection that is made counts.
func (d *Dialer) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	ctx, done := context.WithCancel(ctx)
	defer done() // a connection outlives it
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
	next := time.NewTicker(d.patience)
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

// closeLate closes connections that came too late.
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

// leave counts a connection that ends. The next one begins with the server behind that, unless
// another is in use by now, or the server has answered and holds other connections: net/http
// makes more than it needs, and closes what is left over.
func (d *Dialer) leave(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := d.states[c.server].open
	delete(open, c)
	if len(open) == 0 || !c.answered.Load() {
		d.pass(c.server)
	}
}

// pass makes the next connection begin behind a server, unless another is in use by now.
func (d *Dialer) pass(server int) {
	if d.first == server {
		d.first = (server + 1) % len(d.servers)
	}
}

// heard takes what a server has answered to a read. One that has failed too often is left: all its
// connections end, those of its watches too, so that whatever is asked next is asked of another
// one. Who asks must pause after a failure, as client-go does: that is all that slows a walk along
// servers that all fail.
func (d *Dialer) heard(server int, a answer) {
	for _, c := range d.judge(server, a) {
		_ = c.Close() // nobody waits for what it says
	}
}

// judge returns the connections that must end.
func (d *Dialer) judge(server int, a answer) []*connection {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.states[server]
	s.failures = s.failures.and(a)
	if a.good() && s.left {
		s.left = false
		d.log.Info("an API server that was left answers again", "server", d.servers[server])
	}
	if !s.failures.condemn() {
		return nil
	}
	s.failures = nil
	if !s.left {
		s.left = true
		d.log.Warn("an API server answers with nothing but errors, or too late (504), so the next one of --api-servers is asked; look what it lacks, or take it off the list",
			"server", d.servers[server], "path", a.path, "status", a.status)
	}
	d.pass(server)
	return slices.Collect(maps.Keys(s.open))
}

// connection is one to a server. Why it ends is not known here: the server may have closed it,
// may have shown a certificate of somebody else, may not answer any more, which HTTP/2 finds out,
// or is left for what it answers.
type connection struct {
	net.Conn
	dialer   *Dialer
	server   int
	answered atomic.Bool // the server has sent something, be it of TLS
	left     sync.Once
}

// Read reads what the server sends.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, err
}

// Close closes it.
func (c *connection) Close() error {
	c.left.Do(func() { c.dialer.leave(c) })
	return c.Conn.Close()
}
