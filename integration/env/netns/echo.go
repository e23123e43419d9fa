package netns

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Answer is what an echo server says of itself and of its client.
type Answer struct {
	Node, Pod string
	Client    netip.AddrPort // as the server sees it, after any masquerade
}

// String is the answer as it goes over the wire: "node / pod / client".
func (a Answer) String() string {
	return fmt.Sprintf("%s / %s / %s", a.Node, a.Pod, a.Client)
}

// ParseAnswer reads what an echo server answered.
func ParseAnswer(text string) (Answer, error) {
	parts := strings.Split(strings.TrimSpace(text), " / ")
	if len(parts) != 3 {
		return Answer{}, fmt.Errorf("not an answer of an echo server: %q", text)
	}
	client, err := netip.ParseAddrPort(parts[2])
	if err != nil {
		return Answer{}, fmt.Errorf("not an answer of an echo server: %q: %w", text, err)
	}
	return Answer{Node: parts[0], Pod: parts[1], Client: client}, nil
}

func echo(p *Pod) ([]io.Closer, error) {
	var stream net.Listener
	var datagrams net.PacketConn
	addr := fmt.Sprintf(":%d", EchoPort)
	err := p.Do(func() (err error) {
		if stream, err = net.Listen("tcp", addr); err != nil {
			return err
		}
		datagrams, err = net.ListenPacket("udp", addr)
		return err
	})
	if stream == nil {
		return nil, fmt.Errorf("listening in pod %s: %w", p.Name, err)
	}
	if err != nil {
		return []io.Closer{stream}, fmt.Errorf("listening in pod %s: %w", p.Name, err)
	}
	server := &http.Server{Handler: echoHTTP(p), ReadHeaderTimeout: time.Minute}
	go server.Serve(stream) //nolint:errcheck // ends with ErrServerClosed when the lab closes it
	go echoUDP(p, datagrams)
	return []io.Closer{server, datagrams}, nil
}

func echoHTTP(p *Pod) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, Answer{Node: p.Spec.Node, Pod: p.Name, Client: unmapped(client)})
	})
}

// echoUDP answers each datagram, until conn is closed.
func echoUDP(p *Pod, conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		_, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		udp, ok := from.(*net.UDPAddr)
		if err != nil || !ok {
			continue
		}
		a := Answer{Node: p.Spec.Node, Pod: p.Name, Client: unmapped(udp.AddrPort())}
		// A client that is gone needs no answer.
		_, _ = conn.WriteTo([]byte(a.String()), from)
	}
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
