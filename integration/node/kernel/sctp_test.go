package kernel

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"gridproxy/integration/env/netns"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

const sctpPort = 9090

// SCTP is confined as TCP is. Its sockets are made by hand, because Go has none; the same
// code over TCP shows that the test itself works where the kernel has no SCTP.
func TestStreamProtocols(t *testing.T) {
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
				confined(t, b, c.number, c.protocol)
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

func confined(t *testing.T, b backend, number int, protocol corev1.Protocol) {
	w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
	s := newService("stream", 160)
	port := netns.EchoServicePort("s", protocol)
	port.TargetPort.IntVal = sctpPort
	s.Spec.Ports = []corev1.ServicePort{port}
	for _, p := range w.endpoints("bj-1", "bj-3", "gz-2") {
		w.serveStream(p, number)
	}
	w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
	w.run([]string{"bj-1"}, detect()...)
	want := names(w.endpoints("bj-1", "bj-3"))
	for _, f := range netns.Families() {
		w.holds(func(context.Context) error {
			return w.hear(want, func() (string, error) {
				return askStream(w.Client("bj-1").Namespace, number, vip(f, 160))
			})
		})
	}
}

// serveStream says the Pod's name to everybody who connects, over both families.
func (w *world) serveStream(p *netns.Pod, number int) {
	w.t.Helper()
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	w.must(err)
	var fd int
	w.must(p.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, number); err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &unix.SockaddrInet6{Port: sctpPort}), unix.Listen(fd, 64))
	}))
	done := make(chan struct{})
	w.t.Cleanup(func() {
		// Shutting the socket down would end Accept for TCP, but not for SCTP. Only when nobody
		// waits any more are the numbers free again.
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
		for {
			if _, err := unix.Poll(wait, -1); err != nil && !errors.Is(err, syscall.EINTR) {
				return
			}
			if wait[1].Revents != 0 {
				return
			}
			conn, _, err := unix.Accept(fd)
			if err != nil {
				continue // nobody is there yet, or is gone again
			}
			// A client that is gone hears nothing and says so itself.
			_, _ = unix.Write(conn, []byte(p.Name))
			unix.Close(conn)
		}
	}()
}

func askStream(from *netns.Namespace, number int, to netip.AddrPort) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerDeadline)
	defer cancel()
	return from.AskStream(ctx, number, to, "")
}
