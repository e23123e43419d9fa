package kernel

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// stream is one TCP connection that stays open and asks again and again.
type stream struct {
	conn net.Conn
	read *bufio.Reader
}

func (w *world) newStream(from *netns.Namespace, to netip.AddrPort) *stream {
	w.t.Helper()
	conn, err := from.Dial(wait.Usual.Context(w.t), "tcp", to)
	w.must(err)
	w.t.Cleanup(func() { conn.Close() })
	return &stream{conn: conn, read: bufio.NewReader(conn)}
}

// ask asks on the open connection and returns the name of the Pod that answers.
func (s *stream) ask() (string, error) {
	if err := s.conn.SetDeadline(time.Now().Add(answerDeadline)); err != nil {
		return "", fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := io.WriteString(s.conn, "GET / HTTP/1.1\r\nHost: echo\r\n\r\n"); err != nil {
		return "", fmt.Errorf("asking on an open connection: %w", err)
	}
	resp, err := http.ReadResponse(s.read, nil)
	if err != nil {
		return "", fmt.Errorf("hearing from an open connection: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("hearing from an open connection: %w", err)
	}
	a, err := netns.ParseAnswer(string(text))
	return a.Pod, err
}

// still wants the open connection to go on with the Pod that it has.
func (w *world) still(s *stream, pod string) {
	w.t.Helper()
	if now, err := s.ask(); err != nil || now != pod {
		w.t.Fatalf("on an open connection %q answers (%v), want %s as before", now, err, pod)
	}
}
