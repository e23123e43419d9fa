package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// flow is one UDP socket that keeps asking, and so one entry of connection tracking for as long as that
// is not swept.
type flow struct {
	w    *world
	conn net.Conn
}

func (w *world) flows(from *netns.Namespace, to []netip.AddrPort) []*flow {
	w.Helper()
	w.someAddress(to)
	var all []*flow
	for _, a := range to {
		conn, err := from.Dial(w.Context(), "udp", a)
		w.must(err)
		w.Cleanup(func() { conn.Close() })
		all = append(all, &flow{w, conn})
	}
	return all
}

// ask is short, so that the flow does not rest for as long as its entry takes to expire.
func (f *flow) ask(question string) (string, error) {
	ctx, cancel := context.WithTimeout(f.w.Context(), 500*time.Millisecond)
	defer cancel()
	return askOn(ctx, f.conn, question)
}

// tells waits until the flow is answered so, and again and again so.
func (f *flow) tells(question, want string) {
	f.w.Helper()
	wait.Until(f.w.TB, fmt.Sprintf("the flow to %s tells %s", f.conn.RemoteAddr(), want), func() error {
		for range 3 {
			got, err := f.ask(question)
			if err == nil && got != want {
				err = fmt.Errorf("it tells %q", got)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// unanswered has the flow tracked before anybody is there.
func (f *flow) unanswered() {
	f.w.Helper()
	if got, err := f.ask("hostname"); err == nil {
		f.w.Fatalf("%s answered before there was a Pod", got)
	}
}

// cycle: the server of a flow that goes on is replaced, first when the next one is already there.
func cycle(change func(*corev1.Service), to func(*world, *corev1.Service) []netip.AddrPort, server string, client func(*world) *netns.Namespace) func(*world) {
	return func(w *world) {
		s := w.service(ports(udp80()), change)
		flows := w.flows(client(w), to(w, s))
		for _, f := range flows {
			f.unanswered()
		}
		one := w.pod("one", server)
		for _, f := range flows {
			f.tells("hostname", one)
		}
		two := w.pod("two", server)
		w.endpoint(two, "is ready", func(ready, _, _ bool) bool { return ready })
		w.kill(one)
		for _, f := range flows {
			f.tells("hostname", two)
		}
	}
}

func datagramVIPs(_ *world, s *corev1.Service) []netip.AddrPort { return vips(s, 80) }

func datagramNodePorts(w *world, s *corev1.Service) []netip.AddrPort {
	return w.nodePorts(s, "datagrams", gz)
}

func unreadyGetsReady(w *world) {
	s := w.service(ports(udp80()))
	flows := w.flows(w.client(bj), vips(s, 80))
	one := w.pod("one", gz, unready)
	pod := w.running(one)
	w.endpoint(one, "is not ready", func(ready, _, _ bool) bool { return !ready })
	for _, f := range flows {
		f.unanswered()
	}
	ready := netip.AddrPortFrom(addrOf(pod, netns.IPv4), 8080)
	w.page(w.client(bj), ready, "/ready?on=true", func(p netns.Page) error { return wantOK(p) })
	for _, f := range flows {
		f.tells("hostname", one)
	}
}

func targetPortChanges(w *world) {
	w.join(gzA)
	s := w.service(nodePort, ports(udp80()))
	flows := w.flows(w.client(bj), w.nodePorts(s, "datagrams", gz))
	for _, f := range flows {
		f.tells("port", "8080")
	}
	w.update(s, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(9090) })
	for _, f := range flows {
		f.tells("port", "9090")
	}
}

// invalidState: a packet that connection tracking does not take for a part of the connection is not
// translated back. If it is let through, its receiver resets the connection that it did not open so.
func invalidState(w *world) {
	const number = 7777
	w.join(bjA)
	s := w.service(ports(port("http", corev1.ProtocolTCP, 80, number)))
	server := w.inside(bjA)
	var listener *net.TCPListener
	w.must(server.Do(func() (err error) {
		listener, err = net.ListenTCP("tcp4", &net.TCPAddr{Port: number})
		return err
	}))
	w.Cleanup(func() { listener.Close() })
	near, far := w.connect(w.client(gz), only(netns.IPv4, vips(s, 80))[0], listener)
	defer near.Close()
	defer far.Close()
	w.must(pingPong(near, far))
	for range 5 {
		w.must(server.Do(func() error { return sendOutOfWindow(far) }))
		if err := pingPong(near, far); err != nil {
			w.Fatalf("after a packet that is out of the window the connection is broken: %v", err)
		}
	}
}

// connect opens a connection, and finds its other end among those that a server is offered. One whose opening was
// given up may be among them too.
func (w *world) connect(from *netns.Namespace, to netip.AddrPort, server *net.TCPListener) (near, far net.Conn) {
	w.Helper()
	wait.Until(w.TB, "a connection to "+to.String(), func() (err error) {
		ctx, cancel := context.WithTimeout(w.Context(), answerDeadline)
		defer cancel()
		if near, err = from.Dial(ctx, "tcp", to); err != nil {
			return err
		}
		if far, err = otherEnd(server, near.LocalAddr(), time.Now().Add(answerDeadline)); err != nil {
			near.Close()
		}
		return err
	})
	return near, far
}

// otherEnd accepts connections until one is from a client, whose address is not translated, and closes the others.
func otherEnd(server *net.TCPListener, client net.Addr, deadline time.Time) (net.Conn, error) {
	if err := server.SetDeadline(deadline); err != nil {
		return nil, err
	}
	for {
		conn, err := server.Accept()
		if err != nil {
			return nil, fmt.Errorf("waiting for the connection of %s: %w", client, err)
		}
		if conn.RemoteAddr().String() == client.String() {
			return conn, nil
		}
		conn.Close()
	}
}

func pingPong(a, b net.Conn) error {
	buf := make([]byte, 1)
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		deadline := time.Now().Add(20 * time.Second)
		if err := errors.Join(way[0].SetDeadline(deadline), way[1].SetDeadline(deadline)); err != nil {
			return err
		}
		if _, err := way[0].Write([]byte{'!'}); err != nil {
			return err
		}
		if _, err := way[1].Read(buf); err != nil {
			return err
		}
	}
	return nil
}

func balancerAddrs(w *world, s *corev1.Service) []netip.AddrPort {
	addr := w.balancerAddr()
	w.balance(s, addr.String())
	return at(80, addr)
}

// TestOtherEnd: of the connections that a server is offered it is the client's, and not one that
// was given up before; and when that does not come, nothing is waited for beyond the deadline.
func TestOtherEnd(t *testing.T) {
	server, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var conns []net.Conn
	for range 2 {
		conn, err := net.Dial("tcp4", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	conns[0].Close()
	far, err := otherEnd(server, conns[1].LocalAddr(), time.Now().Add(answerDeadline))
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := pingPong(conns[1], far); err != nil {
		t.Errorf("it is not the other end: %v", err)
	}
	if _, err := otherEnd(server, conns[1].LocalAddr(), time.Now().Add(-time.Second)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("where there is none: %v", err)
	}
}
