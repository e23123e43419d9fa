package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"gridproxy/integration/controlplane"
	"gridproxy/integration/lab"

	"golang.org/x/sys/unix"
)

// result is all that was measured of one contender.
type result struct {
	contender
	cold    time.Duration   // process started -> every Service answers
	change  []time.Duration // EndpointSlice changed -> first answer of a new endpoint
	add     []time.Duration // Service and EndpointSlice made -> first answer
	connect []time.Duration // handshake with the last Service
}

// Between two attempts to connect is a pause that leaves the processor to what is measured; between two
// changes what follows a sync comes to its end. An attempt that is refused while the kernel still sends its
// SYN is not told of that, hence the short patience.
const (
	pause      = 2 * time.Millisecond
	settleTime = 3 * time.Second
	patience   = 60 * time.Millisecond
)

// measure starts a contender on its empty node, and stops it again.
func (w *world) measure(ctx context.Context, c contender) (r result, err error) {
	r.contender = c
	from := w.lab.Client(c.node)
	var all []netip.AddrPort
	for number := range w.services {
		all = append(all, vip(number))
	}
	begin := time.Now()
	process, err := w.start(c)
	if err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, alive(process))
		process.Stop(syscall.SIGTERM, time.Minute)
	}()
	at, err := reach(ctx, process, from, oldPod, all...)
	if err != nil {
		return r, err
	}
	r.cold = at.Sub(begin)
	say("  cold start %s", r.cold.Round(time.Millisecond))
	time.Sleep(settleTime)
	if r.change, err = w.changes(ctx, process, from); err != nil {
		return r, err
	}
	if r.add, err = w.additions(ctx, process, from); err != nil {
		return r, err
	}
	r.connect, err = handshakes(from, vip(w.services-1), w.connects)
	return r, err
}

// changes times new endpoints of Services spread over the list, which get their old ones back after it.
func (w *world) changes(ctx context.Context, process *controlplane.Child, from *lab.Pod) (times []time.Duration, err error) {
	for i := range w.settings.changes {
		number := i * w.services / w.settings.changes
		begin := time.Now()
		if err := w.api.Put(w.slice(number, newPod)); err != nil {
			return times, err
		}
		at, err := reach(ctx, process, from, newPod, vip(number))
		if err != nil {
			return times, err
		}
		times = append(times, at.Sub(begin))
		time.Sleep(settleTime)
		if err := w.api.Put(w.slice(number, oldPod)); err != nil {
			return times, err
		}
		if _, err := reach(ctx, process, from, oldPod, vip(number)); err != nil {
			return times, err
		}
		time.Sleep(settleTime)
	}
	return times, nil
}

// additions times Services that are made, and removes them again.
func (w *world) additions(ctx context.Context, process *controlplane.Child, from *lab.Pod) (times []time.Duration, err error) {
	for i := range w.settings.changes {
		number := w.services + i // never one that was there before: what drains would be in the way
		begin := time.Now()
		if err := w.api.Put(service(number), w.slice(number, oldPod)); err != nil {
			return times, err
		}
		at, err := reach(ctx, process, from, oldPod, vip(number))
		if err != nil {
			return times, err
		}
		times = append(times, at.Sub(begin))
		time.Sleep(settleTime)
		if err := w.api.Remove(service(number), w.slice(number, oldPod)); err != nil {
			return times, err
		}
		time.Sleep(settleTime)
	}
	return times, nil
}

// reach connects from a Pod again and again until all addresses have given the wanted answer, and
// returns when that was.
func reach(ctx context.Context, process *controlplane.Child, from *lab.Pod, wanted byte, all ...netip.AddrPort) (at time.Time, err error) {
	err = from.Do(func() error {
		for _, to := range all {
			for {
				says, _, err := connect(to, patience)
				if err == nil && says == wanted {
					break
				}
				if ctx.Err() != nil {
					return fmt.Errorf("%s never answered %q (last: %q, %w): %w", to, wanted, says, err, context.Cause(ctx))
				}
				if err := alive(process); err != nil {
					return err
				}
				time.Sleep(pause)
			}
		}
		at = time.Now()
		return nil
	})
	return at, err
}

// handshakes times connections to one address. One that is not answered at once is an error.
func handshakes(from *lab.Pod, to netip.AddrPort, count int) (times []time.Duration, err error) {
	err = from.Do(func() error {
		for range count {
			_, took, err := connect(to, 5*time.Second)
			if err != nil {
				return err
			}
			times = append(times, took)
		}
		return nil
	})
	return times, err
}

// connect opens a connection from the calling thread's namespace and reads the one byte that the Pod
// sends. The time is that of the handshake alone, by plain system calls: the Go scheduler's part would be
// larger than what is measured. A reset ends it, so that no state stays behind.
func connect(to netip.AddrPort, patience time.Duration) (says byte, handshake time.Duration, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("making a socket: %w", err)
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(patience.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit),
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
	if err != nil {
		return 0, 0, fmt.Errorf("setting socket options: %w", err)
	}
	start := time.Now()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
		return 0, 0, fmt.Errorf("connecting to %s: %w", to, err)
	}
	handshake = time.Since(start)
	answer := make([]byte, 1)
	if n, err := unix.Read(fd, answer); n != 1 {
		return 0, 0, fmt.Errorf("reading from %s: %w", to, errors.Join(err, errors.New("no answer")))
	}
	return answer[0], handshake, nil
}
