package status

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/cmd/gridproxy/health"
	"gridproxy/cmd/gridproxy/socket"
)

// TestLeftOver: a socket at which no process listens any more is named as such.
func TestLeftOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	left, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false) // as a process that is killed
	_ = left.Close()
	if _, err := Ask(t.Context(), path); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("asking a socket that was left over: %v", err)
	}
}

// TestIdleConnections: a question is answered while there are hundreds of connections that send
// nothing. The oldest of them end.
func TestIdleConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := socket.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPublisher(Config{Node: "bj-3", Checks: func() health.Checks { return health.Checks{} }})
	server := p.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	var idle []net.Conn
	for range 600 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	if s, err := Ask(t.Context(), path); err != nil || s.Node.Name != "bj-3" {
		t.Fatalf("beside 600 idle connections: %+v, %v", s.Node, err)
	}
	for _, conn := range idle[:600-connectionsMax] {
		if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("an old connection got %d bytes, %v", n, err)
		}
	}
}

// TestConnectionWithoutRequest: it is closed after two seconds, before its request and after it.
func TestConnectionWithoutRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPublisher(Config{Node: "bj-3", Checks: func() health.Checks { return health.Checks{} }})
		for _, request := range []string{"", "GET /sta", "GET " + Path + " HTTP/1.1\r\nHost: x\r\n\r\n"} {
			client, daemon := net.Pipe()
			server, l := p.Server(), &oneConn{conn: daemon, closed: make(chan struct{})}
			go func() { _ = server.Serve(l) }()
			began := time.Now()
			_, _ = client.Write([]byte(request))
			if _, err := io.ReadAll(client); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("after %q the connection was open for %s", request, took)
			}
			_ = server.Close()
		}
	})
}

// oneConn is a listener that accepts one connection, on a clock that the test has.
type oneConn struct {
	net.Listener
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	close(l.closed)
	return nil
}
