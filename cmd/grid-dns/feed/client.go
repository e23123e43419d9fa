package feed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/topology/dnsfeed"
)

// Config says where the daemon is, and who hears of what it says.
type Config struct {
	Socket string       // of the daemon
	File   string       // what is known over a restart
	Addrs  []netip.Addr // of this server

	Apply   func(*Contents)         // called for every change, one at a time
	Serving func() []netip.AddrPort // where this server answers now; called for every report
	// Answered returns the counts of these addresses, in their order. Neither it nor Serving may wait
	// for a query: reports of a server that is busy must be in time.
	Answered func([]netip.AddrPort) []dnsfeed.Answered
	Log      *slog.Logger
}

// Client follows the daemon.
type Client struct {
	config Config
	saver  *saver

	moved chan struct{} // where this server answers has changed

	mu        sync.Mutex
	contents  *Contents
	connected bool
	made      int   // connections
	lost      error // why there is no connection, which was logged
}

// New makes a Client. If the file can be read, it calls c.Apply with what that has.
func New(c Config) *Client {
	client := &Client{config: c, saver: newSaver(c.File, c.Log), moved: make(chan struct{}, 1)}
	if contents := readFile(c); contents != nil {
		client.take(contents)
	}
	return client
}

// Contents returns what is known; nil = nothing is.
func (c *Client) Contents() *Contents {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contents
}

// Connection returns the number of the connection to a daemon; each connection has another one.
// 0 = not connected.
func (c *Client) Connection() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.connected {
		return 0
	}
	return c.made
}

func (c *Client) take(contents *Contents) {
	c.mu.Lock()
	c.contents = contents
	c.mu.Unlock()
	c.config.Apply(contents)
}

// Moved makes Run report to the daemon at once where this server answers now. It is safe for
// concurrent use.
func (c *Client) Moved() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// Run follows the daemon until ctx ends: it connects again if needed, and saves what is known.
func (c *Client) Run(ctx context.Context) {
	var saving sync.WaitGroup
	saving.Go(func() { c.saver.run(ctx) })
	defer saving.Wait()
	pause := reconnectDelay
	for ctx.Err() == nil {
		began := time.Now()
		err := c.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		c.report(err)
		if time.Since(began) > reconnectDelayMax {
			pause = reconnectDelay
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, reconnectDelayMax)
	}
}

// report records that there is a connection if err is nil, else why there is none, which it
// logs if the last one ended for another reason.
func (c *Client) report(err error) {
	c.mu.Lock()
	if c.connected = err == nil; c.connected {
		c.made++
	}
	again := c.lost != nil && err != nil && c.lost.Error() == err.Error()
	c.lost = err
	c.mu.Unlock()
	if err != nil && !again {
		c.config.Log.Warn("no connection to the daemon: answers are those of its last update, and it is tried again", "socket", c.config.Socket, "err", err)
	}
}

// follow connects to the daemon, applies its updates and reports to it, until that fails or ctx
// ends. It never returns nil.
func (c *Client) follow(ctx context.Context) error {
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "unix", c.config.Socket)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing more is read
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	r := dnsfeed.NewReader(bufio.NewReaderSize(conn, 64<<10))
	hello, err := r.Hello()
	if err != nil {
		return fmt.Errorf("reading the greeting of the daemon: %w", err)
	}
	c.report(nil)
	progress := &progress{updated: make(chan struct{}, 1)}
	failed := make(chan error, 1)
	go func() {
		failed <- c.keepReporting(ctx, conn, progress)
		cancel()
	}()
	err = c.takeUpdates(hello, r, progress)
	cancel()
	return errors.Join(err, <-failed)
}

// progress is how far one connection is. Generations of two connections have nothing to do with
// each other.
type progress struct {
	generation atomic.Uint64 // of the last update that was applied
	updated    chan struct{}
}

// takeUpdates applies updates until reading fails, and returns why. The first holds everything.
func (c *Client) takeUpdates(hello dnsfeed.Hello, r *dnsfeed.Reader, p *progress) error {
	var known *Contents // from this connection
	for {
		u, err := r.Update()
		switch {
		case err != nil:
			return fmt.Errorf("reading from the daemon: %w", err)
		case u.Whole:
			known = newContents(hello, u.View(), u.Generation, c.config.Addrs).keep(c.Contents(), u.Later)
		case known == nil:
			return fmt.Errorf("%w: the first update is not of everything", dnsfeed.ErrMalformed)
		default:
			known = known.after(u)
		}
		c.take(known)
		c.saver.note(known)
		p.generation.Store(u.Generation)
		select {
		case p.updated <- struct{}{}:
		default:
		}
	}
}

// keepReporting reports after updates, Moved and each reportPeriod. It returns nil if ctx ends.
func (c *Client) keepReporting(ctx context.Context, conn net.Conn, p *progress) error {
	w := dnsfeed.NewWriter(conn)
	tick := time.NewTicker(reportPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.updated:
		case <-c.moved:
		case <-tick.C:
		}
		report := dnsfeed.Report{Generation: p.generation.Load(), Serving: c.config.Serving()}
		report.Answered = c.config.Answered(report.Serving)
		if err := errors.Join(conn.SetWriteDeadline(time.Now().Add(writeTimeout)), w.Report(report)); err != nil {
			return err
		}
	}
}
