package kernel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

const sctpPort = 9090

// SCTP is confined as TCP is. Its sockets are made by hand, because Go has none; the same
// code over TCP shows that the test itself works where the kernel has no SCTP.
func TestStreamProtocols(t *testing.T) {
	eachStreamProtocol(t, confined)
}

// An open connection is left alone when closure tightens around it, in each mode: only new ones are
// confined. In IPVS mode its endpoint drains. There a new connection from the port of one that has
// ended does not reach the endpoint that drains, although the kernel still knows both.
func TestOpenStreamIsLeftAlone(t *testing.T) {
	eachStreamProtocol(t, func(t *testing.T, b backend, number int, protocol corev1.Protocol) {
		const port = 40123
		w, s := newStreamWorld(t, b, number, protocol)
		netns.Confine(s, "")
		w.Serve(s, w.Endpoint("gz-2"))
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		var open []*os.File
		for _, f := range netns.Families() {
			for _, p := range []uint16{0, port} {
				conn := w.dialStream(from, number, p, netns.VIP(f, 160))
				open = append(open, conn)
				w.answers(conn, "", w.Endpoint("gz-2"))
			}
		}

		netns.Confine(s, `["location"]`)
		w.Serve(s, w.endpoints("gz-2", "bj-3")...)
		w.apply()
		for _, f := range netns.Families() {
			w.holds(func(context.Context) error {
				return w.hear(netns.Names(w.endpoints("bj-3")), func() (string, error) { return askStream(from, number, netns.VIP(f, 160)) })
			})
		}
		for _, conn := range open {
			w.answers(conn, "again", w.Endpoint("gz-2"))
		}
		if b.mode != modeIPVS {
			return
		}
		for i, f := range netns.Families() {
			ended := open[2*i+1]
			w.Must(unix.SetsockoptLinger(int(ended.Fd()), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})) // free at once
			w.Must(ended.Close())
			w.answers(w.dialStream(from, number, port, netns.VIP(f, 160)), "", w.Endpoint("bj-3"))
			w.answers(open[2*i], "again", w.Endpoint("gz-2"))
		}
	})
}

func eachStreamProtocol(t *testing.T, test func(*testing.T, backend, int, corev1.Protocol)) {
	t.Helper()
	eachBackend(t, func(t *testing.T, b backend) {
		for _, c := range []struct {
			name     string
			number   int
			protocol corev1.Protocol
		}{
			{"tcp", unix.IPPROTO_TCP, corev1.ProtocolTCP},
			{"sctp", unix.IPPROTO_SCTP, corev1.ProtocolSCTP},
		} {
			t.Run(c.name, func(t *testing.T) {
				needSocket(t, c.name, c.number)
				test(t, b, c.number, c.protocol)
			})
		}
	})
}

func needSocket(t *testing.T, name string, number int) {
	t.Helper()
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, number); err == nil {
		unix.Close(fd)
	} else if errors.Is(err, syscall.EPROTONOSUPPORT) {
		if guest() {
			t.Fatalf("the guest's kernel has no %s sockets: is its module packed?", name)
		}
		// No package brings it, so it stays a skip where others are failures. The rules
		// are covered by the walk of packets and by the round trip through the kernel.
		t.Skipf("SKIPPED: this kernel has no %s sockets (CONFIG_IP_SCTP): run `modprobe sctp`, or `make test SUITES='packets-*'`", name)
	}
}

// newStreamWorld has a server of the protocol on three nodes, and a Service for it.
func newStreamWorld(t *testing.T, b backend, number int, protocol corev1.Protocol) (*world, *corev1.Service) {
	t.Helper()
	w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
	s := netns.NewClosedService("stream", 160)
	port := netns.EchoServicePort("s", protocol)
	port.TargetPort.IntVal = sctpPort
	s.Spec.Ports = []corev1.ServicePort{port}
	for _, p := range w.endpoints("bj-1", "bj-3", "gz-2") {
		w.serveStream(p, number)
	}
	return w, s
}

func confined(t *testing.T, b backend, number int, protocol corev1.Protocol) {
	w, s := newStreamWorld(t, b, number, protocol)
	w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
	w.run([]string{"bj-1"}, detect()...)
	want := netns.Names(w.endpoints("bj-1", "bj-3"))
	for _, f := range netns.Families() {
		w.holds(func(context.Context) error {
			return w.hear(want, func() (string, error) {
				return askStream(w.Client("bj-1").Namespace, number, netns.VIP(f, 160))
			})
		})
	}
}

// serveStream says the Pod's name to everybody who connects, over both families, and again for each
// message.
func (w *world) serveStream(p *netns.Pod, number int) {
	w.t.Helper()
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	w.Must(err)
	var fd int
	w.Must(p.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, number); err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &unix.SockaddrInet6{Port: sctpPort}), unix.Listen(fd, 64))
	}))
	done := make(chan struct{})
	w.t.Cleanup(func() {
		// Shutting the socket down would end Accept for TCP, but not for SCTP. Only when the
		// server waits no more are the numbers free again.
		if _, err := unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
			w.t.Errorf("stopping a server: %v", err)
		}
		<-done
		unix.Close(fd)
		unix.Close(stop)
	})
	go func() {
		defer close(done)
		wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(stop), Events: unix.POLLIN}}
		defer func() {
			for _, conn := range wait[2:] {
				unix.Close(int(conn.Fd))
			}
		}()
		for {
			if _, err := unix.Poll(wait, -1); err != nil && !errors.Is(err, syscall.EINTR) {
				return
			}
			if wait[1].Revents != 0 {
				return
			}
			wait = append(wait[:2], slices.DeleteFunc(wait[2:], func(conn unix.PollFd) bool {
				gone := conn.Revents != 0 && !heard(int(conn.Fd), p.Name)
				if gone {
					unix.Close(int(conn.Fd))
				}
				return gone
			})...)
			conn, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			if err != nil {
				continue // no client is there yet, or it is gone again
			}
			// A client that is gone hears nothing and says so itself.
			_, _ = unix.Write(conn, []byte(p.Name))
			wait = append(wait, unix.PollFd{Fd: int32(conn), Events: unix.POLLIN})
		}
	}()
}

// heard answers a message on a connection, unless it has ended.
func heard(conn int, answer string) bool {
	n, err := unix.Read(conn, make([]byte, 1500))
	if errors.Is(err, unix.EAGAIN) {
		return true
	}
	if n > 0 {
		_, err = unix.Write(conn, []byte(answer))
	}
	return n > 0 && err == nil
}

// dialStream opens a connection that stays open to the end of the test, or until it is closed.
func (w *world) dialStream(from *netns.Namespace, number int, port uint16, to netip.AddrPort) *os.File {
	w.t.Helper()
	var conn *os.File
	wait.Until(w.t, fmt.Sprintf("a connection to %s is open", to), func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), answerDeadline)
		defer cancel()
		conn, err = from.DialStream(ctx, number, port, to)
		return err
	})
	w.t.Cleanup(func() { conn.Close() })
	return conn
}

// answers wants this Pod to answer a message on an open connection; "" = to greet on a new one.
func (w *world) answers(conn *os.File, message string, want *netns.Pod) {
	w.t.Helper()
	if message != "" {
		_, err := conn.WriteString(message)
		w.Must(err)
	}
	buf := make([]byte, 1500)
	n, err := conn.Read(buf)
	if err != nil || string(buf[:n]) != want.Name {
		w.t.Fatalf("%s: after %q %q answers (%v), want %s", conn.Name(), message, buf[:n], err, want.Name)
	}
}

func askStream(from *netns.Namespace, number int, to netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerDeadline)
	defer cancel()
	return from.AskStream(ctx, number, to, "")
}
