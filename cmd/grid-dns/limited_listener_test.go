package main

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// clients opens connections to a listener that holds all it accepts.
type clients struct {
	t    *testing.T
	to   string
	held []net.Conn
}

// open opens a connection from an address, and reports whether it stays open.
func (c *clients) open(from string) bool {
	c.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: waitTimeout}
	conn, err := d.Dial("tcp", c.to)
	if err != nil {
		return false // reset at once
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(waitTimeout)); err != nil {
		c.t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1)) // an accepted connection is greeted
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("a connection from %s is neither accepted nor refused", from)
	}
	if err == nil {
		c.held = append(c.held, conn)
	}
	return err == nil
}

// wantReset waits until a held connection ends.
func (c *clients) wantReset(i int, which string) {
	c.t.Helper()
	_ = c.held[i].SetReadDeadline(time.Now().Add(waitTimeout))
	if _, err := c.held[i].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("the oldest connection %s goes on: %v", which, err)
	}
}

func (l *limitedListener) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total == 0 && len(l.open) == 0
}

// TestLimitedListener: a new connection is always accepted, in the place of the oldest one of a
// client that has too many, or most. What is closed is not counted.
func TestLimitedListener(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resets := prometheus.NewCounter(prometheus.CounterOpts{Name: "resets"})
	l := newLimitedListener(inner, resets, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // the client is gone
				_, _ = conn.Write([]byte{0})
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	c := &clients{t: t, to: inner.Addr().String()}
	for i := range connectionsOfClientMax + 1 {
		if !c.open("127.0.0.2") {
			t.Fatalf("connection %d of a client is refused", i+1)
		}
	}
	c.wantReset(0, "of a client that has too many")
	for i := connectionsOfClientMax; i < connectionsMax; i++ {
		if from := net.IPv4(127, 0, 1, byte(i/(connectionsOfClientMax-1))).String(); !c.open(from) {
			t.Fatalf("connection %d is refused, of %s", i+1, from)
		}
	}
	if n := testutil.ToFloat64(resets); n != 1 {
		t.Errorf("%v resets are counted, want 1", n)
	}
	if !c.open("127.0.0.3") {
		t.Error("a client without connections is refused")
	}
	c.wantReset(1, "of the client that has most")
	for range connectionsOfClientMax + 1 {
		if !c.open("127.0.0.1") {
			t.Fatal("this machine itself is refused")
		}
	}
	if n := testutil.ToFloat64(resets); n != 3 {
		t.Errorf("%v resets are counted, want 3", n)
	}
	for _, conn := range c.held {
		_ = conn.Close()
	}
	wait.Until(t, "closed connections are not counted", func() error { return wait.Check(l.empty(), "some are") })
}
