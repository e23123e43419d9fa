package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Link is a TCP proxy in front of an API server that can fail in the ways that networks do. It
// listens on the loopback of its clients' network namespace; a fresh one passes everything.
type Link struct {
	Addr netip.AddrPort

	listener net.Listener
	target   string
	dial     dialFunc
	closed   context.Context
	close    context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	state   linkState
	changed chan struct{} // closed and replaced when state changes
	flows   map[*flow]struct{}
	opened  int
	carried int // from the server
	sent    int // from clients
	pieces  int // in which both came
}

// dialFunc is what net.Dialer.DialContext is.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

type linkState struct {
	cut   bool          // connections are reset, new ones too
	stall bool          // nothing passes, nothing ends
	delay time.Duration // before each piece
	piece int           // bytes at a time
}

// flow is one client's connection and the one made for it.
type flow struct {
	client, server net.Conn
	dead           bool // stays silent, whatever the Link does later
}

// NewLink puts a Link in front of an API server of the cluster.
func (c *Cluster) NewLink(a *APIServer) (*Link, error) { return c.LinkFrom(nil, a) }

// LinkFrom is NewLink for clients in a network namespace.
func (c *Cluster) LinkFrom(ns Namespace, a *APIServer) (*Link, error) {
	return newLink(ns, a.Addr.String(), Dialer(c.options.Namespace))
}

func newLink(ns Namespace, target string, dial dialFunc) (*Link, error) {
	var listener net.Listener
	err := Within(ns, func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening for a link: %w", err)
	}
	l := &Link{
		Addr:     listener.Addr().(*net.TCPAddr).AddrPort(),
		listener: listener,
		target:   target,
		dial:     dial,
		state:    pass,
		changed:  make(chan struct{}),
		flows:    map[*flow]struct{}{},
	}
	l.closed, l.close = context.WithCancel(context.Background())
	l.running.Go(l.accept)
	return l, nil
}

var pass = linkState{piece: 32 << 10}

// Pass ends every fault. Bytes that a Stall held back arrive now.
func (l *Link) Pass() { l.set(pass) }

// Cut resets all connections, and every new one at once.
func (l *Link) Cut() {
	l.set(linkState{cut: true})
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.flows {
		f.reset()
	}
}

// Stall holds all bytes back and ends nothing, as a path that loses every packet does.
func (l *Link) Stall() { l.set(linkState{stall: true, piece: pass.piece}) }

// Strand stalls the connections of now until they end, and new ones pass: what a firewall does that
// has forgotten its flows. Only the client's own probing can find out.
func (l *Link) Strand() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.flows {
		f.dead = true
	}
}

// Slow passes so many bytes at a time, each after a delay.
func (l *Link) Slow(delay time.Duration, piece int) { l.set(linkState{delay: delay, piece: piece}) }

// Opened is how many connections were ever made through the Link.
func (l *Link) Opened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// Carried is how many bytes have ever come from the server.
func (l *Link) Carried() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.carried
}

// Sent is how many bytes have ever come from clients. pieces is in how many reads those of both
// ways came: a segment of TCP or more each, which the client has sent or acknowledged.
func (l *Link) Sent() (bytes, pieces int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.pieces
}

// Close ends the Link and everything through it.
func (l *Link) Close() {
	l.close()
	l.listener.Close()
	l.Cut()
	l.running.Wait()
}

func (l *Link) set(s linkState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() { l.serve(client) })
	}
}

func (l *Link) serve(client net.Conn) {
	f := &flow{client: client}
	defer f.reset()
	l.mu.Lock()
	cut := l.state.cut
	l.mu.Unlock()
	if cut {
		return
	}
	server, err := l.dial(l.closed, "tcp", l.target)
	if err != nil {
		return
	}
	f.server = server
	l.mu.Lock()
	l.flows[f] = struct{}{}
	l.opened++
	cut = l.state.cut // it may have been cut while dialling
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.flows, f)
		l.mu.Unlock()
	}()
	if cut {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.carry(f, f.server, f.client) })
	both.Go(func() { l.carry(f, f.client, f.server) })
	both.Wait()
}

// carry moves bytes one way until either end is gone. The other way then ends too: half-open
// connections are no part of what is tested.
func (l *Link) carry(f *flow, to, from net.Conn) {
	defer f.reset()
	buffer := make([]byte, pass.piece)
	for {
		n, err := from.Read(buffer)
		for sent := 0; sent < n; {
			piece, ok := l.admit(f, n-sent)
			if !ok {
				return
			}
			l.count(f, from, piece) // first: the reader of the bytes may ask for the counts
			if _, err := to.Write(buffer[sent : sent+piece]); err != nil {
				return
			}
			sent += piece
		}
		if err != nil {
			return
		}
	}
}

func (l *Link) count(f *flow, from net.Conn, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pieces++
	if from == f.server {
		l.carried += bytes
	} else {
		l.sent += bytes
	}
}

// admit waits until bytes may pass and says how many; false: the Link is closed or cut.
func (l *Link) admit(f *flow, want int) (int, bool) {
	for {
		l.mu.Lock()
		s, changed, dead := l.state, l.changed, f.dead
		l.mu.Unlock()
		switch {
		case s.cut:
			return 0, false
		case dead || s.stall:
			select {
			case <-changed:
			case <-l.closed.Done():
				return 0, false
			}
		case s.delay > 0:
			select {
			case <-time.After(s.delay):
				return min(want, s.piece), true
			case <-changed:
			case <-l.closed.Done():
				return 0, false
			}
		default:
			return want, true
		}
	}
}

// reset closes both ends so that the peers see a reset, not an orderly end.
func (f *flow) reset() {
	for _, c := range []net.Conn{f.client, f.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
}
