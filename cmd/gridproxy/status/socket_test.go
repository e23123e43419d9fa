package status

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/cmd/gridproxy/health"
	"gridproxy/integration/env/wait"
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

// TestIdleConnections: connections that send nothing are as many as are served at once at most, and
// end, so that a later question is answered.
func TestIdleConnections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPublisher(Config{Node: "bj-3", Checks: func() health.Checks { return health.Checks{} }})
	server := p.Server()
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	if s, err := Ask(t.Context(), path); err != nil || s.Node.Name != "bj-3" {
		t.Fatalf("%+v, %v", s.Node, err)
	}
	for range maxConnections {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if _, err := Ask(t.Context(), path); err == nil || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("more than %d connections are served: %v", maxConnections, err)
	}
	wait.Until(t, "idle connections end", func() error {
		_, err := Ask(t.Context(), path)
		return err
	})
}
