package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
)

// ipvsResult is all that was measured of one contender.
type ipvsResult struct {
	contender
	cold    time.Duration   // process started -> every Service answers
	change  []time.Duration // EndpointSlice changed -> first answer of a new endpoint
	add     []time.Duration // Service and EndpointSlice made -> first answer
	connect []time.Duration // handshake with the last Service
}

// Between two attempts to connect is a pause that leaves the processor to what is measured; between
// two changes what follows a sync comes to its end. An attempt that is refused while the kernel
// still sends its SYN is not told of that, hence the short patience.
const (
	ipvsPause      = 2 * time.Millisecond
	ipvsSettleTime = 3 * time.Second
	patience       = 60 * time.Millisecond
)

// measure starts a contender on its empty node, and stops it again.
func (w *ipvsWorld) measure(ctx context.Context, c contender) (r ipvsResult, err error) {
	r.contender = c
	from := w.lab.Client(c.node)
	var all []netip.AddrPort
	for number := range w.services {
		all = append(all, vipOf(number))
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
	at, err := reachIPVS(ctx, process, from, oldPod, all...)
	if err != nil {
		return r, err
	}
	r.cold = at.Sub(begin)
	say("  cold start %s", r.cold.Round(time.Millisecond))
	time.Sleep(ipvsSettleTime)
	if r.change, err = w.changes(ctx, process, from); err != nil {
		return r, err
	}
	if r.add, err = w.additions(ctx, process, from); err != nil {
		return r, err
	}
	r.connect, err = ipvsHandshakes(from, vipOf(w.services-1), w.connects)
	return r, err
}

// changes times new endpoints of Services spread over the list, which get their old ones back after
// it.
func (w *ipvsWorld) changes(ctx context.Context, process *apiserver.Child, from *netns.Pod) (times []time.Duration, err error) {
	for i := range w.ipvsSettings.changes {
		number := i * w.services / w.ipvsSettings.changes
		begin := time.Now()
		if err := w.api.Put(w.slice(number, newPod)); err != nil {
			return times, err
		}
		at, err := reachIPVS(ctx, process, from, newPod, vipOf(number))
		if err != nil {
			return times, err
		}
		times = append(times, at.Sub(begin))
		time.Sleep(ipvsSettleTime)
		if err := w.api.Put(w.slice(number, oldPod)); err != nil {
			return times, err
		}
		if _, err := reachIPVS(ctx, process, from, oldPod, vipOf(number)); err != nil {
			return times, err
		}
		time.Sleep(ipvsSettleTime)
	}
	return times, nil
}

// additions times Services that are made, and removes them again.
func (w *ipvsWorld) additions(ctx context.Context, process *apiserver.Child, from *netns.Pod) (times []time.Duration, err error) {
	for i := range w.ipvsSettings.changes {
		number := w.services + i // never one that was there before: what drains would be in the way
		begin := time.Now()
		if err := w.api.Put(serviceOf(number), w.slice(number, oldPod)); err != nil {
			return times, err
		}
		at, err := reachIPVS(ctx, process, from, oldPod, vipOf(number))
		if err != nil {
			return times, err
		}
		times = append(times, at.Sub(begin))
		time.Sleep(ipvsSettleTime)
		if err := w.api.Remove(serviceOf(number), w.slice(number, oldPod)); err != nil {
			return times, err
		}
		time.Sleep(ipvsSettleTime)
	}
	return times, nil
}

// reachIPVS connects from a Pod again and again until all addresses have given the wanted answer,
// and returns when that was.
func reachIPVS(ctx context.Context, process *apiserver.Child, from *netns.Pod, wanted byte, all ...netip.AddrPort) (at time.Time, err error) {
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
				time.Sleep(ipvsPause)
			}
		}
		at = time.Now()
		return nil
	})
	return at, err
}

// ipvsHandshakes times connections to one address. One that is not answered at once is an error.
func ipvsHandshakes(from *netns.Pod, to netip.AddrPort, count int) (times []time.Duration, err error) {
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
