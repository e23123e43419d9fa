package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
)

// result is what was measured of one program with one variant and so many Services.
type result struct {
	proxy    proxy
	variant  apiserver.Variant
	services int
	change   []time.Duration // EndpointSlice changed -> first answer of the new endpoint
	busy     time.Duration   // processor time for all of these, until settleTime after each
	add      []time.Duration // Service and EndpointSlice made -> first answer
	cold     []time.Duration // process started -> every Service answers
	connect  []time.Duration // handshake with the last Service of the list
	failed   int             // of those, attempts without an answer within a second
	memory   memory
	unserved time.Duration // it did not serve within so long, so that nothing else was measured
}

// verifyRounds is how many rounds of reading the kernel back the memory is taken after. The
// first one is long after the start, because what was written then is dear to read.
const verifyRounds = 1

// restAfterRounds is left after them. What kube-proxy holds does not change for minutes.
const restAfterRounds = 5 * time.Second

// settleTime is left between two changes, so that what follows a sync (the other family,
// conntrack) is over before the next one is timed.
const settleTime = time.Second

// notServing is why a cold start is given up.
type notServing struct{ within time.Duration }

func (e notServing) Error() string { return fmt.Sprintf("no cold start within %s", e.within) }

// measure takes part round of what is measured of one program: in round 0 its memory, reading
// the kernel back every second to be done soon; in each later one its share of the changes, as
// it is preset. Each round is a cold start too. Rounds of both programs take turns, because a
// machine is not equally fast all the time.
func (w *world) measure(ctx context.Context, r *result, round int) (err error) {
	var flags []string
	if round == 0 {
		flags = []string{"--verify-period=1s"}
	}
	if err := w.wipe(ctx, r.proxy, r.variant); err != nil {
		return fmt.Errorf("emptying the tables: %w", err)
	}
	d, took, err := w.coldStart(ctx, r.proxy, r.variant, flags)
	if d == nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.alive())
		d.stop()
		err = errors.Join(err, w.wipe(context.WithoutCancel(ctx), r.proxy, r.variant))
	}()
	if err != nil {
		return err
	}
	r.cold = append(r.cold, took)
	say("  cold start %s", short(took))
	if round > 0 {
		return w.whileRunning(ctx, d, r)
	}
	if r.memory, err = w.rest(ctx, d); err != nil {
		return err
	}
	say("  memory %d MiB, of it %d MiB anonymous", r.memory.resident>>20, r.memory.anonymous>>20)
	return nil
}

// whileRunning adds a round's share of the changes, the new Services and the handshakes.
func (w *world) whileRunning(ctx context.Context, d *daemon, r *result) error {
	time.Sleep(settleTime)
	profiled := w.profileCPU(ctx, d)
	before, err := d.processorTime()
	if err != nil {
		return err
	}
	changes, err := w.changes(ctx, d)
	if err != nil {
		return err
	}
	after, err := d.processorTime()
	if err != nil {
		return err
	}
	r.change, r.busy = append(r.change, changes...), r.busy+after-before
	say("  change of an endpoint %s, 90th percentile %s, processor time %s", short(median(changes)),
		short(percentile(changes, 90)), short((after-before)/time.Duration(len(changes))))
	added, err := w.additions(ctx, d)
	if err != nil {
		return err
	}
	r.add = append(r.add, added...)
	say("  new Service %s", short(median(added)))
	connected, failed, err := w.latency(ctx, d)
	if err != nil {
		return err
	}
	r.connect, r.failed = append(r.connect, connected...), r.failed+failed
	if failed > 0 {
		say("  %d of %d handshakes got no answer within a second", failed, w.share(w.connects))
	}
	say("  handshake %s", short(median(connected)))
	return profiled()
}

// share is a round's part of something that all rounds but the first do together.
func (s settings) share(all int) int { return (all + s.starts - 2) / (s.starts - 1) }

// coldStart starts a program on empty tables, and times until the first, the middle and the last
// Service answer. That nothing is missing then is checked in the kernel; what is missing is
// waited for.
func (w *world) coldStart(ctx context.Context, p proxy, v apiserver.Variant, flags []string) (*daemon, time.Duration, error) {
	d, begin, err := w.start(p, v, flags...)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.startLimit, notServing{w.startLimit})
	defer cancel()
	last := len(w.vips) - 1
	end, err := usualTempo().reach(ctx, d.Child, w.client(d), oldPod, w.vips[last], w.vips[last/2], w.vips[0])
	for err == nil {
		var entries []string
		if entries, err = d.services(ctx); err != nil || len(entries) >= len(w.vips) {
			break
		}
		end = time.Now()
		if err = context.Cause(ctx); err == nil {
			err = d.alive()
		}
	}
	if err != nil {
		err = errors.Join(err, d.alive())
	}
	d.settled = time.Now()
	return d, end.Sub(begin), err
}

func (w *world) client(d *daemon) *netns.Pod { return w.lab.Client(d.node.Name) }

// changes moves one Service in the middle to the new Pods and back.
func (w *world) changes(ctx context.Context, d *daemon) ([]time.Duration, error) {
	number := len(w.vips) / 2
	target := newPod
	var times []time.Duration
	for range w.share(w.settings.changes) {
		if err := w.point(ctx, nameOf(number), target); err != nil {
			return nil, err
		}
		begin := time.Now()
		end, err := usualTempo().reach(ctx, d.Child, w.client(d), target, w.vips[number])
		if err != nil {
			return nil, err
		}
		times = append(times, end.Sub(begin))
		target = oldPod + newPod - target
		time.Sleep(settleTime)
	}
	return times, w.point(ctx, nameOf(number), oldPod)
}

// additions makes one Service at a time and removes it again, a third as often as a change is
// measured.
func (w *world) additions(ctx context.Context, d *daemon) ([]time.Duration, error) {
	var times []time.Duration
	for range (w.share(w.settings.changes) + 2) / 3 {
		w.extra++
		name := fmt.Sprintf("new-%05d", w.extra)
		vip, err := w.addService(ctx, name)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		end, err := usualTempo().reach(ctx, d.Child, w.client(d), oldPod, vip)
		if err != nil {
			return nil, err
		}
		times = append(times, end.Sub(begin))
		time.Sleep(settleTime)
		if err := w.removeService(ctx, name); err != nil {
			return nil, fmt.Errorf("removing Service %s: %w", name, err)
		}
		time.Sleep(settleTime)
	}
	return times, nil
}

// latency times handshakes with the Service whose entry is the last one that a packet meets.
func (w *world) latency(ctx context.Context, d *daemon) (times []time.Duration, failed int, err error) {
	entries, err := d.services(ctx)
	if err != nil {
		return nil, 0, err
	}
	match := regexp.MustCompile(`-d ([0-9.]+)/32 .*--dport ([0-9]+) `).FindStringSubmatch(entries[len(entries)-1])
	if match == nil {
		return nil, 0, fmt.Errorf("the last entry of KUBE-SERVICES is no cluster IP's: %s", entries[len(entries)-1])
	}
	vip, err := netip.ParseAddrPort(match[1] + ":" + match[2])
	if err != nil {
		return nil, 0, fmt.Errorf("reading the last entry of KUBE-SERVICES: %w", err)
	}
	if err := w.forgetFlows(ctx, d.node); err != nil {
		return nil, 0, err
	}
	count := w.share(w.connects)
	return handshakes(w.client(d), vip, count, count-1, time.Second)
}

// rest leaves a program alone for a round in which gridproxy reads the kernel back, and says
// what it holds then. Once a round another process adds a chain, because gridproxy would not look
// at the tables otherwise; more often, and iptables-save, which begins again whenever the tables
// change under it, would never end. kube-proxy does not look at its rules, and is given a second
// for each round.
func (w *world) rest(ctx context.Context, d *daemon) (memory, error) {
	seen := -1
	for seen < verifyRounds {
		rounds, err := d.rounds(ctx)
		if err != nil {
			return memory{}, err
		}
		if rounds > seen {
			seen = rounds
			if seen >= verifyRounds {
				break
			}
			tool, chain := "iptables-"+string(d.variant), fmt.Sprintf("ELSEWHERE-%d", rounds)
			if _, err := d.node.Run(ctx, nil, tool, "-w", "10", "-t", "nat", "-N", chain); err != nil {
				return memory{}, err
			}
		}
		select {
		case <-ctx.Done():
			return memory{}, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	select { // gridproxy gives back what it does not use after a round
	case <-ctx.Done():
		return memory{}, context.Cause(ctx)
	case <-time.After(restAfterRounds):
	}
	m, err := d.memory()
	return m, errors.Join(err, w.profileHeap(ctx, d))
}

var verifyRuns = regexp.MustCompile(`(?m)^gridproxy_verify_runs_total(?:\{[^}]*\})? ([0-9.e+]+)$`)

// rounds counts the rounds since the first sync.
func (d *daemon) rounds(ctx context.Context) (int, error) {
	if err := d.alive(); err != nil {
		return 0, err
	}
	if d.proxy == kubeProxy {
		return int(time.Since(d.settled) / time.Second), nil
	}
	page, err := d.node.Get(ctx, metricsAddr, "/metrics")
	if err != nil {
		return 0, err
	}
	match := verifyRuns.FindSubmatch(page.Text)
	if match == nil {
		return 0, errors.New("gridproxy's metrics do not count verify runs")
	}
	runs, err := strconv.ParseFloat(string(match[1]), 64)
	return int(runs) - 1, err // the first sync is one
}

var metricsAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 10249)

// profileHeap writes down what holds gridproxy's memory, if that was asked for.
func (w *world) profileHeap(ctx context.Context, d *daemon) error {
	if w.profile == "" || d.proxy != gridproxy {
		return nil
	}
	return w.fetchProfile(ctx, d, "heap", "/debug/pprof/heap?gc=1")
}

// profileCPU takes a profile from now until the returned function is called, if that was asked
// for.
func (w *world) profileCPU(ctx context.Context, d *daemon) func() error {
	if w.profile == "" || d.proxy != gridproxy {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- w.fetchProfile(ctx, d, "cpu", "/debug/pprof/profile?seconds=10") }()
	return func() error { return <-done }
}

func (w *world) fetchProfile(ctx context.Context, d *daemon, kind, path string) error {
	page, err := d.node.Get(ctx, metricsAddr, path)
	if err != nil {
		return fmt.Errorf("fetching a profile: %w", err)
	}
	file := filepath.Join(w.profile, strings.Join([]string{d.node.Name, strconv.Itoa(len(w.vips)), kind + ".pprof"}, "-"))
	if err := os.MkdirAll(w.profile, 0o755); err != nil {
		return fmt.Errorf("making the folder for profiles: %w", err)
	}
	if err := os.WriteFile(file, page.Text, 0o644); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}
