package main

import (
	"context"
	"errors"
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

// ipvsTempo returns the tempo on an emulated processor, which is left to what is measured.
func ipvsTempo() tempo { return tempo{pause: 2 * time.Millisecond, timeout: 60 * time.Millisecond} }

// ipvsSettleTime is left between two changes, so that what follows a sync comes to its end.
const ipvsSettleTime = 3 * time.Second

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
		err = errors.Join(err, alive(c.name, process))
		process.Stop(syscall.SIGTERM, time.Minute)
	}()
	at, err := ipvsTempo().reach(ctx, process, from, oldPod, all...)
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
	r.connect, _, err = handshakes(from, vipOf(w.services-1), w.connects, 0, 5*time.Second)
	return r, err
}

// changes times new endpoints of Services spread over the list, which get their old ones back after
// it.
func (w *ipvsWorld) changes(ctx context.Context, process *apiserver.Child, from *netns.Pod) (times []time.Duration, err error) {
	for i := range w.ipvsSettings.changes {
		number := i * w.services / w.ipvsSettings.changes
		begin := time.Now()
		if err := w.api.Put(w.slice(nameOf(number), newPod)); err != nil {
			return times, err
		}
		at, err := ipvsTempo().reach(ctx, process, from, newPod, vipOf(number))
		if err != nil {
			return times, err
		}
		times = append(times, at.Sub(begin))
		time.Sleep(ipvsSettleTime)
		if err := w.api.Put(w.slice(nameOf(number), oldPod)); err != nil {
			return times, err
		}
		if _, err := ipvsTempo().reach(ctx, process, from, oldPod, vipOf(number)); err != nil {
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
		if err := w.api.Put(serviceOf(number), w.slice(nameOf(number), oldPod)); err != nil {
			return times, err
		}
		at, err := ipvsTempo().reach(ctx, process, from, oldPod, vipOf(number))
		if err != nil {
			return times, err
		}
		times = append(times, at.Sub(begin))
		time.Sleep(ipvsSettleTime)
		if err := w.api.Remove(serviceOf(number), w.slice(nameOf(number), oldPod)); err != nil {
			return times, err
		}
		time.Sleep(ipvsSettleTime)
	}
	return times, nil
}
