package watch

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"gridproxy/topology"
)

// Silence measures for how long nothing came from the API server, not even the answer to an HTTP/2
// ping. It finds the cuts that no request notices: a connection that died is given up after 30 s,
// and the next one may find the link whole. Safe for concurrent use.
type Silence struct {
	limit time.Duration // a silence as long is an outage; 0 = none is

	mu    sync.Mutex
	heard time.Time // the last time that something came; zero = nothing has yet
	last  PastLoss  // the last silence that is over and was an outage
}

// dial opens a connection.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// pingAfter is how long a connection is idle before client-go sends a ping, unless PingSooner was
// called; pingSlack is how long the answer may take on a link that works.
const (
	pingAfter = 30 * time.Second
	pingSlack = 2 * time.Second
)

// pingVariable is client-go's variable for how long a connection is idle before a ping, in seconds.
const pingVariable = "HTTP2_READ_IDLE_TIMEOUT_SECONDS"

// PingSooner makes clients of this process send a ping after 15 s, unless the environment says
// otherwise, so that each cut of longCut is found. Call it before a client is made.
func PingSooner() error {
	if os.Getenv(pingVariable) != "" {
		return nil
	}
	return os.Setenv(pingVariable, "15")
}

// NewSilence makes a Silence that has heard nothing. It follows client-go's variables for pings.
func NewSilence() *Silence {
	s := &Silence{limit: pingAfter + pingSlack}
	if after, err := strconv.Atoi(os.Getenv(pingVariable)); err == nil {
		s.limit = max(longCut, time.Duration(after)*time.Second+pingSlack)
		if after <= 0 { // no pings
			s.limit = 0
		}
	}
	if os.Getenv("DISABLE_HTTP2") != "" {
		s.limit = 0
	}
	return s
}

// Dial returns a function that opens connections as open does, and notes when something comes
// from them. open = nil: as client-go opens them, within ConnectLimit.
func (s *Silence) Dial(open dial) dial {
	if open == nil {
		open = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: ConnectLimit(address), KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
		}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return heardConn{conn, s}, nil
	}
}

// heardConn is a connection that notes when something is read.
type heardConn struct {
	net.Conn
	silence *Silence
}

// NetConn returns the connection that is listened to, as tls.Conn does: its opener wants it.
func (c heardConn) NetConn() net.Conn { return c.Conn }

func (c heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.silence.end(time.Now())
	}
	return n, err
}

// end notes that something came. If that ends an outage, it is the last one from now on.
func (s *Silence) end(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.long(now) {
		s.last = PastLoss{Since: s.heard, End: now}
	}
	s.heard = now
}

func (s *Silence) long(now time.Time) bool {
	return s.limit > 0 && !s.heard.IsZero() && now.Sub(s.heard) >= s.limit
}

// goesOn reports whether a loss that began at since is the same one as p. An attempt to connect
// may have begun in a cut and fail just after its end, while another one has succeeded: less
// than a wave's window after a cut does not make them two. Short losses that follow each other
// are no cut.
func (p PastLoss) goesOn(since time.Time) bool {
	end := p.End
	if p.End.Sub(p.Since) >= longCut {
		end = end.Add(topology.WaveWindow)
	}
	return !p.End.IsZero() && !since.After(end)
}

// extend returns the present and the last loss that requests have noticed, with what s knows. A
// nil Silence knows nothing.
func (s *Silence) extend(present Loss, last PastLoss, now time.Time) (Loss, PastLoss) {
	if s == nil {
		return present, last
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.long(now) && (present.Since.IsZero() || s.heard.Before(present.Since)) {
		present.Since = s.heard
	}
	if !present.Since.IsZero() && s.last.Since.Before(present.Since) && s.last.goesOn(present.Since) {
		present.Since = s.last.Since
	}
	if !present.Since.IsZero() && present.Reason == "" {
		present.Reason = "nothing has come from it, not even the answer to a ping"
	}
	return present, merged(last, s.last)
}

// merged returns one outage made of two if the later one goes on with the other, else the later
// one.
func merged(a, b PastLoss) PastLoss {
	if b.End.After(a.End) {
		a, b = b, a
	}
	if b.goesOn(a.Since) && b.Since.Before(a.Since) {
		a.Since = b.Since
	}
	return a
}
