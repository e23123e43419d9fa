package netns

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"gridproxy/integration/env/need"

	"golang.org/x/sys/unix"
)

// TestDialStreamOutlivesSignals: a signal, such as the Go runtime sends to its threads, does not
// end an attempt to connect. The other Pod drops the packets, so the attempt lasts until its
// deadline.
func TestDialStreamOutlivesSignals(t *testing.T) {
	need.IPTables(t)
	l := build(t, Manual())
	from, to := l.Pods()[0], l.Pods()[1]
	if _, err := to.Run(t.Context(), nil, "iptables-nft", "-w", "10", "-A", "INPUT", "-p", "tcp", "-j", "DROP"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		conn, err := from.DialStream(ctx, unix.IPPROTO_TCP, 0, netip.AddrPortFrom(to.Addr(IPv4), EchoPort))
		if err == nil {
			err = errors.Join(conn.Close(), errors.New("connected"))
		}
		ended <- err
	}()
	signals := time.NewTicker(5 * time.Millisecond)
	defer signals.Stop()
	for {
		select {
		case err := <-ended:
			if !errors.Is(err, unix.ETIMEDOUT) {
				t.Errorf("the attempt ended with %v, want a timeout", err)
			}
			return
		case <-signals.C:
			signalThreads(t)
		}
	}
}

// signalThreads sends each thread of this process the signal that the Go runtime uses itself.
func signalThreads(t *testing.T) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Tgkill(os.Getpid(), id, unix.SIGURG); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
	}
}
