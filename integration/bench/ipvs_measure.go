package main

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
)

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
		took, err := w.timed(ctx, process, from, newPod, number, w.slice(nameOf(number), newPod))
		if err != nil {
			return times, err
		}
		times = append(times, took)
		if _, err := w.timed(ctx, process, from, oldPod, number, w.slice(nameOf(number), oldPod)); err != nil {
			return times, err
		}
	}
	return times, nil
}

// additions times Services that are made, and removes them again.
func (w *ipvsWorld) additions(ctx context.Context, process *apiserver.Child, from *netns.Pod) (times []time.Duration, err error) {
	for i := range w.ipvsSettings.changes {
		number := w.services + i // never one that was there before: what drains would be in the way
		service, slice := serviceOf(number), w.slice(nameOf(number), oldPod)
		took, err := w.timed(ctx, process, from, oldPod, number, service, slice)
		if err != nil {
			return times, err
		}
		times = append(times, took)
		if err := w.api.Remove(service, slice); err != nil {
			return times, err
		}
		time.Sleep(ipvsSettleTime)
	}
	return times, nil
}

// timed puts objects, and returns how long it takes until a Service answers with a byte. Before
// it returns, it lets the machine settle.
func (w *ipvsWorld) timed(ctx context.Context, process *apiserver.Child, from *netns.Pod, says byte, number int, put ...need.FakeObject) (time.Duration, error) {
	begin := time.Now()
	if err := w.api.Put(put...); err != nil {
		return 0, err
	}
	at, err := ipvsTempo().reach(ctx, process, from, says, vipOf(number))
	time.Sleep(ipvsSettleTime)
	return at.Sub(begin), err
}
