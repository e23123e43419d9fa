package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	patience time.Duration
	connect  func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	first int   // into servers: where the next connection is tried first
	open  []int // by server: how many connections have not been closed
}

// New makes a Dialer for servers, one at least, each as HOST:PORT.
func New(servers []string) *Dialer {
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
	return &Dialer{servers: servers, patience: patience, connect: d.DialContext, open: make([]int, len(servers))}
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
				d.settle(a.server)
				go closeLate(tried, started-len(failed)-1)
				return &connection{Conn: a.conn, dialer: d, server: a.server}, nil
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

func (d *Dialer) settle(server int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = server
	d.open[server]++
}

// leave counts a connection that ends. The next one begins with the server behind that, unless
// another is in use by now, or the server has answered and holds other connections: net/http
// makes more than it needs, and closes what is left over.
func (d *Dialer) leave(server int, answered bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[server]--
	if d.first == server && (d.open[server] == 0 || !answered) {
		d.first = (server + 1) % len(d.servers)
	}
}

// connection is one to a server. Why it ends is not known here: the server may have closed it,
// may have shown a certificate of somebody else, or may not answer any more, which HTTP/2 finds
// out.
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
	c.left.Do(func() { c.dialer.leave(c.server, c.answered.Load()) })
	return c.Conn.Close()
}
