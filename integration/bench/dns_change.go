package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dnsChange is what one changed EndpointSlice costs, without what the programs use at rest.
type dnsChange struct {
	what    string
	daemon  time.Duration // gridproxy itself
	started time.Duration // programs that gridproxy started
	server  time.Duration // grid-dns
}

const (
	atRest        = 20 * time.Second
	betweenSlices = 150 * time.Millisecond // so that each is decided and sent alone
	answerLimit   = 10 * time.Second       // from a change to an answer with it
)

// measureChanges changes the slice of a headless Service, which changes names only, and that of a
// Service with a cluster IP, which changes rules too.
func (c *dnsCompare) measureChanges(ctx context.Context, s *dnsServers) ([]dnsChange, error) {
	var found []dnsChange
	time.Sleep(settleTime)
	for _, of := range []struct {
		what    string
		service namedService
	}{
		{"a headless Service's, names only", namedService{0}},
		{"a ClusterIP Service's, rules and names", namedService{1}},
	} {
		say("%d changes of one EndpointSlice: %s", c.changes, of.what)
		rest, restLasted, err := c.busyDuring(s, func() error { time.Sleep(atRest); return nil })
		if err != nil {
			return found, err
		}
		profiled := func() error { return nil }
		if of.service.headless() {
			profiled = c.world.profileCPU(ctx, s.daemon)
		}
		busy, lasted, err := c.busyDuring(s, func() error { return c.change(ctx, s, of.service) })
		if err != nil {
			return found, err
		}
		if err := profiled(); err != nil {
			return found, err
		}
		each := func(busy, rest time.Duration) time.Duration {
			return max(0, busy-time.Duration(float64(rest)*lasted.Seconds()/restLasted.Seconds())) / time.Duration(c.changes)
		}
		change := dnsChange{
			what: of.what, daemon: each(busy.daemon, rest.daemon), started: each(busy.started, rest.started), server: each(busy.server, rest.server),
		}
		say("  each %s in gridproxy, %s in programs that it starts, %s in grid-dns", short(change.daemon), short(change.started), short(change.server))
		say("  at rest %s a second in gridproxy, %s in grid-dns", short(rest.daemon/time.Duration(atRest.Seconds())), short(rest.server/time.Duration(atRest.Seconds())))
		found = append(found, change)
	}
	return found, nil
}

// busyDuring is the processor time that the programs use while f runs, and how long that is.
func (c *dnsCompare) busyDuring(s *dnsServers, f func() error) (busy dnsChange, lasted time.Duration, err error) {
	now := func() (u dnsChange, err error) {
		daemon, err := processorTimeOf(s.daemon.PID())
		if err != nil {
			return u, err
		}
		server, err := processorTimeOf(s.named(dnsOfUnit).PID())
		return dnsChange{daemon: daemon.own, started: daemon.started, server: server.own}, err
	}
	begin := time.Now()
	before, err := now()
	if err != nil {
		return busy, 0, err
	}
	if err := f(); err != nil {
		return busy, 0, err
	}
	after, err := now()
	return dnsChange{
		daemon: after.daemon - before.daemon, started: after.started - before.started, server: after.server - before.server,
	}, time.Since(begin), err
}

// change moves the last endpoint of a Service there and back, and looks for a headless one whether
// grid-dns answers with it.
func (c *dnsCompare) change(ctx context.Context, s *dnsServers, of namedService) error {
	for i := range c.changes {
		changed := i%2 == 0
		if _, err := c.world.api.DiscoveryV1().EndpointSlices(of.namespace()).Update(ctx, of.slice(changed), metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("changing EndpointSlice %s: %w", of.name(), err)
		}
		for deadline := time.Now().Add(answerLimit); ; {
			time.Sleep(betweenSlices)
			if !of.headless() {
				break
			}
			addrs, err := c.ask(s.named(dnsOfUnit), of.dnsName())
			if err == nil && of.in(addrs, changed) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("grid-dns answers %v to %s %s after a change (%w): %w", addrs, of.dnsName(), answerLimit, err, s.alive())
			}
		}
	}
	return nil
}

// measureLag changes the slice of a headless Service and asks grid-dns and CoreDNS in turn until
// both answer with the change. It returns how much later grid-dns did, by change, ascending.
func (c *dnsCompare) measureLag(ctx context.Context, s *dnsServers) ([]time.Duration, error) {
	of := namedService{10}
	say("%d changes of one EndpointSlice: when grid-dns and CoreDNS answer with it", c.changes)
	var lags []time.Duration
	for i := range c.changes {
		time.Sleep(betweenSlices)
		changed := i%2 == 0
		if _, err := c.world.api.DiscoveryV1().EndpointSlices(of.namespace()).Update(ctx, of.slice(changed), metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("changing EndpointSlice %s: %w", of.name(), err)
		}
		known := map[string]time.Time{}
		for deadline := time.Now().Add(answerLimit); len(known) < 2; {
			for _, name := range []string{dnsOfUnit, dnsOfCluster} {
				addrs, err := c.ask(s.named(name), of.dnsName())
				if known[name].IsZero() && err == nil && of.in(addrs, changed) {
					known[name] = time.Now()
				}
			}
			if time.Now().After(deadline) {
				return nil, errors.Join(fmt.Errorf("%s after a change only %v answer with it", answerLimit, slices.Collect(maps.Keys(known))), s.alive())
			}
		}
		lags = append(lags, known[dnsOfUnit].Sub(known[dnsOfCluster]))
	}
	slices.Sort(lags)
	return lags, nil
}
