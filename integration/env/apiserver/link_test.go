package apiserver

import (
	"io"
	"net"
	"testing"
	"time"
)

// echoThrough is a Link to a server that sends back what it gets.
func echoThrough(t *testing.T) *Link {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	link, err := newLink(nil, server.Addr().String(), Dialer(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	return link
}

func connect(t *testing.T, link *Link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", link.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// echoes says whether bytes come back within the time, whole.
func echoes(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	if _, err := conn.Write([]byte("ping")); err != nil {
		return false
	}
	return arrives(t, conn, within)
}

func arrives(t *testing.T, conn net.Conn, within time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	_, err := io.ReadFull(conn, got)
	return err == nil && string(got) == "ping"
}

const (
	arriveTimeout = 10 * time.Second       // for what must happen
	hardly        = 150 * time.Millisecond // for what must not
)

func TestLinkPassesAndCuts(t *testing.T) {
	link := echoThrough(t)
	conn := connect(t, link)
	if !echoes(t, conn, arriveTimeout) {
		t.Fatal("a fresh link does not pass")
	}
	if sent, pieces := link.Sent(); sent != 4 || pieces != 2 || link.Carried() != 4 {
		t.Errorf("4 bytes and their echo are counted as %d sent, %d carried, in %d pieces", sent, link.Carried(), pieces)
	}
	link.Cut()
	if echoes(t, conn, arriveTimeout) {
		t.Error("an old connection lives on through a cut link")
	}
	if conn, err := net.Dial("tcp", link.Addr.String()); err == nil { // it may be reset before Dial returns
		if echoes(t, conn, arriveTimeout) {
			t.Error("a cut link lets a new connection through")
		}
		conn.Close()
	}
	link.Pass()
	if !echoes(t, connect(t, link), arriveTimeout) {
		t.Error("a repaired link does not pass")
	}
	if got := link.Opened(); got != 2 {
		t.Errorf("%d connections were made through the link, want 2", got)
	}
}

func TestLinkStalls(t *testing.T) {
	link := echoThrough(t)
	conn := connect(t, link)
	if !echoes(t, conn, arriveTimeout) {
		t.Fatal("a fresh link does not pass")
	}
	link.Stall()
	if echoes(t, conn, hardly) {
		t.Fatal("a stalled link passes bytes")
	}
	link.Pass()
	if !arrives(t, conn, arriveTimeout) {
		t.Error("bytes that were held back never arrive")
	}
}

func TestLinkStrands(t *testing.T) {
	link := echoThrough(t)
	old := connect(t, link)
	if !echoes(t, old, arriveTimeout) {
		t.Fatal("a fresh link does not pass")
	}
	link.Strand()
	link.Pass()
	if echoes(t, old, hardly) {
		t.Error("a stranded connection passes bytes")
	}
	if !echoes(t, connect(t, link), arriveTimeout) {
		t.Error("a new connection does not pass beside a stranded one")
	}
}

func TestLinkIsSlow(t *testing.T) {
	link := echoThrough(t)
	conn := connect(t, link)
	link.Slow(time.Millisecond, 1)
	if !echoes(t, conn, arriveTimeout) {
		t.Fatal("a slow link does not pass")
	}
	link.Slow(time.Hour, 1)
	if echoes(t, conn, hardly) {
		t.Fatal("a link as slow as an hour a byte passes four at once")
	}
	link.Pass()
	if !arrives(t, conn, arriveTimeout) {
		t.Error("bytes that were delayed never arrive")
	}
}
