package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"

	"golang.org/x/sys/unix"
)

// tempo is how attempts to connect follow each other. The pause is short against everything that is
// timed, and long enough to leave the processor to what is measured.
type tempo struct{ pause, timeout time.Duration }

func usualTempo() tempo { return tempo{pause: time.Millisecond, timeout: 10 * time.Millisecond} }

// connect opens a connection from the calling thread's namespace and reads the one byte that the Pod
// sends. The time is that of the handshake alone. Plain system calls: the Go scheduler's part would be
// larger than what is measured.
//
// The kernel does not report a refusal that comes while it still sends the SYN, so timeout should
// be short where refusals are expected.
func connect(to netip.AddrPort, timeout time.Duration) (says byte, handshake time.Duration, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("making a socket: %w", err)
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(timeout.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
		// A reset at the end leaves no TIME_WAIT behind to run out of ports by.
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	if err != nil {
		return 0, 0, fmt.Errorf("setting socket options: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	start := time.Now()
	if err := netns.Connect(ctx, fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return 0, 0, fmt.Errorf("connecting to %s: %w", to, err)
	}
	handshake = time.Since(start)
	answer := make([]byte, 1)
	n, err := unix.Read(fd, answer)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(fd, answer)
	}
	if n != 1 {
		return 0, 0, fmt.Errorf("reading from %s: %w", to, errors.Join(err, errors.New("no answer")))
	}
	return answer[0], handshake, nil
}

// reach connects from a Pod again and again until all addresses have given the wanted answer, and
// returns when that was. It is an error if the process that serves them ends.
func (t tempo) reach(ctx context.Context, process *apiserver.Child, from *netns.Pod, wanted byte, all ...netip.AddrPort) (at time.Time, err error) {
	err = from.Do(func() error {
		for _, to := range all {
			for {
				says, _, err := connect(to, t.timeout)
				if err == nil && says == wanted {
					break
				}
				if ctx.Err() != nil {
					return fmt.Errorf("%s never answered %q (last: %q, %w): %w", to, wanted, says, err, context.Cause(ctx))
				}
				if err := alive("the proxy", process); err != nil {
					return err
				}
				time.Sleep(t.pause)
			}
		}
		at = time.Now()
		return nil
	})
	return at, err
}

// handshakes times connections to one address, and counts those that were not answered. It returns
// an error as soon as these are more than mayFail.
func handshakes(from *netns.Pod, to netip.AddrPort, count, mayFail int, timeout time.Duration) (times []time.Duration, failed int, err error) {
	err = from.Do(func() error {
		for range count {
			_, took, err := connect(to, timeout)
			if err == nil {
				times = append(times, took)
			} else if failed++; failed > mayFail {
				return err
			}
		}
		return nil
	})
	return times, failed, err
}
