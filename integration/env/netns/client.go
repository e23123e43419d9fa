package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
)

// Dial opens a connection from the namespace. The address must be an IP address and port.
func (n *Namespace) Dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := n.Do(func() (err error) {
		// Without a second attempt in another goroutine, the socket is made on this thread.
		d := net.Dialer{FallbackDelay: -1}
		if source := netip.AddrPortFrom(n.source, 0); n.source.IsValid() && network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(source)
		} else if n.source.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(source)
		}
		conn, err = d.DialContext(ctx, network, to.String())
		return err
	})
	return conn, err
}

// Fetch asks an echo server over TCP, on a connection of its own.
func (n *Namespace) Fetch(ctx context.Context, to netip.AddrPort) (Answer, error) {
	body, err := n.Get(ctx, to, "/")
	if err != nil {
		return Answer{}, err
	}
	return ParseAnswer(string(body.Text))
}

// Page is an answer of an HTTP server.
type Page struct {
	Code   int
	Header http.Header
	Text   []byte
}

// Get asks any HTTP server for a path, on a connection of its own. Every status code is
// an answer, not an error.
func (n *Namespace) Get(ctx context.Context, to netip.AddrPort, path string) (Page, error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return n.Dial(ctx, network, to)
		},
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.String()+path, nil)
	if err != nil {
		return Page{}, fmt.Errorf("asking %s: %w", to, err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return Page{}, fmt.Errorf("asking %s from %s: %w", to, n.Name, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return Page{}, fmt.Errorf("reading what %s answered to %s: %w", to, n.Name, err)
	}
	return Page{Code: resp.StatusCode, Header: resp.Header, Text: text}, nil
}

// Ask sends one datagram on conn and reads the answer. Several of them on one conn are one
// flow to the kernel.
func Ask(ctx context.Context, conn net.Conn) (Answer, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return Answer{}, fmt.Errorf("setting a deadline: %w", err)
		}
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return Answer{}, fmt.Errorf("asking %s: %w", conn.RemoteAddr(), err)
	}
	buf := make([]byte, 1500)
	k, err := conn.Read(buf)
	if err != nil {
		return Answer{}, fmt.Errorf("hearing from %s: %w", conn.RemoteAddr(), err)
	}
	return ParseAnswer(string(buf[:k]))
}

// AskUDP asks an echo server over UDP, in a flow of its own.
func (n *Namespace) AskUDP(ctx context.Context, to netip.AddrPort) (Answer, error) {
	conn, err := n.Dial(ctx, "udp", to)
	if err != nil {
		return Answer{}, fmt.Errorf("asking %s from %s: %w", to, n.Name, err)
	}
	defer conn.Close()
	return Ask(ctx, conn)
}

// ErrOther is wrapped by the errors about an answer of a Pod that must not answer.
var ErrOther = errors.New("another Pod answered")

// Hear asks who is there, at least and at most so often: each answer must be of one of those
// wanted, and all of them must be heard.
func Hear(want []string, least, most int, ask func() (string, error)) error {
	heard := map[string]bool{}
	for i := 0; i < least || len(heard) < len(want) && i < most; i++ {
		name, err := ask()
		if err != nil {
			return fmt.Errorf("want an answer of %s: %w", want, err)
		}
		if !slices.Contains(want, name) {
			return fmt.Errorf("%w: %s, want one of %s", ErrOther, name, want)
		}
		heard[name] = true
	}
	if len(heard) < len(want) {
		return fmt.Errorf("heard only %v, want all of %s", heard, want)
	}
	return nil
}
