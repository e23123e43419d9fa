package syncer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// bench is a running Syncer in virtual time.
type bench struct {
	*Syncer
	src     *source
	here    *machine
	backend *backend
	seen    *observer
	began   time.Time
	cancel  context.CancelFunc
	ended   chan error // closed after Run's result
}

// run gives test a running Syncer; every duration is virtual.
func run(t *testing.T, change func(*bench, *Config), test func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{src: newSource(), here: newMachine(), backend: &backend{t: t}, seen: &observer{}, began: time.Now(), ended: make(chan error, 1)}
		b.here.host = topology.Host{IPv4: true}
		c := Config{
			Source: b.src, Host: b.here.read, HostMoved: b.here.moved,
			Backends:      []NamedBackend{{"fake", b.backend}},
			MinSyncPeriod: testMin, VerifyPeriod: testVerify, Observers: []Observer{b.seen},
		}
		if change != nil {
			change(b, &c)
		}
		b.Syncer = New(c)
		ctx, cancel := context.WithCancel(t.Context())
		b.cancel = cancel
		go func() { b.ended <- b.Run(ctx); close(b.ended) }()
		synctest.Wait()
		test(t, b)
		cancel()
		for range b.ended {
		}
	})
}

// Pending returns the time of the oldest change that is pending in some family.
func (b *bench) Pending() time.Time { return earlier(b.PendingOf(rules.IPv4), b.PendingOf(rules.IPv6)) }

// at lets time pass until so long after the beginning, and everything happen that is due.
func (b *bench) at(d time.Duration) {
	time.Sleep(time.Until(b.began.Add(d)))
	synctest.Wait()
}

// starts are when runs started, as durations since the beginning.
func (b *bench) starts() []time.Duration {
	var out []time.Duration
	for _, c := range b.backend.history() {
		out = append(out, c.start.Sub(b.began))
	}
	return out
}

func (b *bench) expectStarts(t *testing.T, want ...time.Duration) {
	t.Helper()
	if got := b.starts(); !slices.Equal(got, want) {
		t.Errorf("runs started at %v, want %v", got, want)
	}
}

const ms, s = time.Millisecond, time.Second

func TestNothingBeforeWholeSnapshot(t *testing.T) {
	run(t, nil, func(t *testing.T, b *bench) {
		notify(b.src.changed) // something came, but not all
		b.at(time.Hour)
		b.expectStarts(t)
		if p := b.Pending(); !p.IsZero() {
			t.Errorf("Pending = %v while there is nothing to write", p)
		}
		b.src.set(someSnapshot("1"))
		synctest.Wait()
		b.expectStarts(t, time.Hour)
	})
}

func TestFirstChangeAtOnceThenMinPeriodFromEnd(t *testing.T) {
	run(t, func(b *bench, c *Config) { b.backend.took, c.VerifyPeriod = 200*ms, 0 }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.src.set(someSnapshot("1"))
		for i := range 10 { // 5.1 s to 6 s: during the run and after it
			b.at(5100*ms + time.Duration(i)*100*ms)
			b.src.set(someSnapshot("2"))
		}
		b.at(60 * s)
		b.src.set(someSnapshot("3"))
		b.at(70 * s)
		b.expectStarts(t, 5*s, 6200*ms, 60*s)
	})
}

func TestVerifyPeriod(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.backend.took = 500 * ms; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.src.set(someSnapshot("2")) // does not put the verification off
		b.at(32 * s)
		b.expectStarts(t, 0, 5*s, 10500*ms, 21*s, 31500*ms)
		var verified []bool
		for _, c := range b.backend.history() {
			verified = append(verified, c.verify)
		}
		if want := []bool{true, false, true, true, true}; !slices.Equal(verified, want) {
			t.Errorf("verify = %v, want %v", verified, want)
		}
	})
}

func TestNoVerifyPeriod(t *testing.T) {
	run(t, func(b *bench, c *Config) { c.VerifyPeriod = 0; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(time.Hour)
		b.expectStarts(t, 0)
	})
}

func TestBackoff(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.backend.failures = 7; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(50 * s)
		b.expectStarts(t, 0, 1*s, 3*s, 7*s, 15*s, 25*s, 35*s, 45*s)
		for i, c := range b.backend.history() {
			if !c.verify {
				t.Errorf("run %d follows a failure and does not read the kernel back", i)
			}
		}
		if p := b.Pending(); !p.IsZero() {
			t.Errorf("Pending = %v after a success", p)
		}
	})
}

// TestBackoffOutlastsVerifyPeriod: a verification that is overdue because runs fail does
// not undo the back-off.
func TestBackoffOutlastsVerifyPeriod(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.backend.fail(1000)
		b.at(50 * s)
		b.expectStarts(t, 0, 10*s, 11*s, 13*s, 17*s, 25*s, 35*s, 45*s)
	})
}

// TestEventsDoNotBypassBackoff: while runs fail, each run reads the kernel back, so a change
// waits for the retry. The retry takes it up.
func TestEventsDoNotBypassBackoff(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.backend.fail(5)
		for i := range 140 { // from 10 s to 45 s
			b.at(10*s + time.Duration(i)*250*ms)
			b.src.set(someSnapshot(fmt.Sprint("change ", i)))
			if i%10 == 0 {
				notify(b.here.moved)
			}
		}
		b.at(44900 * ms)
		want := []time.Duration{0, 10 * s, 11 * s, 13 * s, 17 * s, 25 * s, 35 * s}
		for at := 36 * s; at < 45*s; at += s {
			want = append(want, at) // works again: a change waits for the minimum period only
		}
		b.expectStarts(t, want...)
		b.at(60 * s)
		if p := b.Pending(); !p.IsZero() {
			t.Errorf("Pending = %v after a success", p)
		}
	})
}

func TestPendingStandsWhileFailing(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(4 * s)
		if p, l := b.Pending(), b.LastSuccessOf(rules.IPv4); !p.IsZero() || !l.Equal(b.began) {
			t.Errorf("Pending, LastSuccess = %v, %v at rest", p, l)
		}
		b.backend.fail(1000)
		b.src.set(someSnapshot("2"))
		b.at(8 * s)
		b.src.set(someSnapshot("3"))
		b.at(time.Hour)
		if got := b.Pending().Sub(b.began); got != 4*s {
			t.Errorf("the oldest change is pending since %v, want 4s", got)
		}
		b.backend.fail(0)
		b.at(time.Hour + testVerify)
		if p := b.Pending(); !p.IsZero() {
			t.Errorf("Pending = %v after a success", p)
		}
	})
}

func TestPendingShowsHangingRun(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.backend.took = time.Hour; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(30 * time.Minute)
		if got := b.Pending().Sub(b.began); got != 0 {
			t.Errorf("pending since %v, want 0s", got)
		}
		b.src.set(someSnapshot("2"))
		b.at(61 * time.Minute)
		if got := b.Pending().Sub(b.began); got != 30*time.Minute {
			t.Errorf("after the first run, pending since %v, want 30m", got)
		}
	})
}

// TestFailedVerificationIsPending: nothing changed, but the kernel cannot be trusted.
func TestFailedVerificationIsPending(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.backend.fail(1000)
		b.at(time.Minute)
		if got := b.Pending().Sub(b.began); got != testVerify {
			t.Errorf("pending since %v, want %v", got, testVerify)
		}
	})
}

func TestRunEndsBeforeExit(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.backend.took = 5 * s; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(3 * s)
		b.cancel()
		if err := <-b.ended; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if got := time.Since(b.began); got != 5*s {
			t.Errorf("Run returned after %v, want 5s, when the run has ended", got)
		}
		if calls := b.backend.history(); len(calls) != 1 || len(b.backend.enforced().Services) != 1 {
			t.Errorf("%d runs, kernel %v; want one run, finished", len(calls), b.backend.enforced())
		}
	})
}

// TestStopInterruptsRun: a run that takes longer, such as a large first one, does not keep the
// process for more than a few seconds.
func TestStopInterruptsRun(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.backend.took = time.Hour; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(10 * time.Minute)
		b.cancel()
		if err := <-b.ended; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if got := time.Since(b.began) - 10*time.Minute; got != stopGrace {
			t.Errorf("Run returned %v after it was to stop, want %v", got, stopGrace)
		}
		if len(b.backend.history()) != 1 {
			t.Errorf("%d runs, want one", len(b.backend.history()))
		}
	})
}

// TestPendingShowsHangingRepair: a verification that hangs is pending although nothing has
// changed, and it makes no progress.
func TestPendingShowsHangingRepair(t *testing.T) {
	run(t, func(b *bench, _ *Config) { b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		if p, step := b.Pending(), b.Progress(); !p.IsZero() || !step.IsZero() {
			t.Errorf("Pending, Progress = %v, %v at rest", p, step)
		}
		b.backend.set(func(k *backend) { k.took = time.Hour })
		b.at(30 * time.Minute)
		if got := b.Pending().Sub(b.began); got != testVerify {
			t.Errorf("the verification that hangs is pending since %v, want %v", got, testVerify)
		}
		if got := b.Progress().Sub(b.began); got != testVerify {
			t.Errorf("it made progress at %v, want %v", got, testVerify)
		}
	})
}

// TestProgressOfLongRun: a long run that makes progress differs from one that hangs.
func TestProgressOfLongRun(t *testing.T) {
	change := func(b *bench, _ *Config) {
		b.backend.steps, b.backend.took = 100, 10*s
		b.src.set(someSnapshot("1"))
	}
	run(t, change, func(t *testing.T, b *bench) {
		b.at(505 * s)
		if p, step := b.Pending().Sub(b.began), b.Progress().Sub(b.began); p != 0 || step != 500*s {
			t.Errorf("Pending, Progress = %v, %v, want 0s, 500s", p, step)
		}
		b.backend.set(func(k *backend) { k.steps = 0 })
		b.at(1001 * s)
		if p, step := b.Pending(), b.Progress(); !p.IsZero() || !step.IsZero() {
			t.Errorf("Pending, Progress = %v, %v after the run", p, step)
		}
	})
}

func TestBackendsDoNotStopEachOther(t *testing.T) {
	var second *backend
	swept := &flows{}
	run(t, func(b *bench, c *Config) {
		second = &backend{t: b.backend.t}
		b.backend.failures = 1
		c.Backends = append(c.Backends, NamedBackend{"second", second})
		c.Flows = swept
		b.src.set(someSnapshot("1"))
	}, func(t *testing.T, b *bench) {
		if len(second.enforced().Services) != 1 {
			t.Error("the second Backend was left out after the first one failed")
		}
		r := b.seen.all()[0]
		if r.Err == nil || r.Backends[0].Err == nil || r.Backends[1].Err != nil {
			t.Errorf("Result: %v, %v, %v; want the first Backend's error", r.Err, r.Backends[0].Err, r.Backends[1].Err)
		}
		if of := swept.families(); len(of) != 1 || of[0] != (rules.FamilySet{}) {
			t.Errorf("flows of %v were swept, want one call that tells that no family is in force", of)
		}
		b.at(5 * s)
		if of := swept.families(); len(of) != 2 || of[1] != (rules.FamilySet{true, true}) {
			t.Errorf("flows of %v were swept, want those of both families after one success", of)
		}
	})
}

// flows records how it was asked, and fails on demand.
type flows struct {
	err error

	mu         sync.Mutex
	forced     []bool
	synced     []rules.FamilySet
	remembered [][]*rules.Service
}

func (f *flows) Remember(services []*rules.Service) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remembered = append(f.remembered, services)
}

// before are the numbers of Services that were in force before, by call.
func (f *flows) before() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var numbers []int
	for _, services := range f.remembered {
		numbers = append(numbers, len(services))
	}
	return numbers
}

func (f *flows) Clean(_ context.Context, want rules.Ruleset, view topology.View, synced rules.FamilySet, force bool) (deleted, outlived int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forced = append(f.forced, force)
	f.synced = append(f.synced, synced)
	return len(want.Services), len(view.Ports) + 1, f.err
}

// families are those that the flows were to be swept of, by call.
func (f *flows) families() []rules.FamilySet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.synced)
}

func (f *flows) asked() []bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.forced)
}

func TestFlowsAfterRepairAndError(t *testing.T) {
	swept := &flows{err: errors.New("no netlink")}
	run(t, func(b *bench, c *Config) { c.Flows = swept; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.backend.tamper()
		b.at(11 * s)
		if want := []bool{false, true}; !slices.Equal(swept.asked(), want) {
			t.Errorf("flows were swept with force %v, want %v: rules were missing for a time", swept.asked(), want)
		}
		r := b.seen.all()[1]
		if r.Err != nil || r.Flows.Err == nil || r.Flows.Deleted != 1 || r.Flows.Outlived != 2 || r.Changes.Repaired != 1 || !r.Changes.Verified {
			t.Errorf("Result = err %v, flows %+v, changes %+v", r.Err, r.Flows, r.Changes)
		}
	})
}

// inParts is a Backend that leaves something to the next Sync.
type inParts struct {
	*backend
	parts int
}

func (p *inParts) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	c, err := p.backend.Sync(ctx, want, verify)
	if p.parts > 0 {
		p.parts--
		c.Late, c.Again = true, time.Nanosecond
	}
	return c, err
}

// TestFlowsAfterEachPart: while rules of a large Service come in parts, flows still begin by
// its old ones, so they are swept after each part.
func TestFlowsAfterEachPart(t *testing.T) {
	swept := &flows{}
	change := func(b *bench, c *Config) {
		c.Flows, c.Backends[0].Backend = swept, &inParts{b.backend, 2}
		b.src.set(someSnapshot("1"))
	}
	run(t, change, func(t *testing.T, b *bench) {
		b.at(5 * s)
		if want := []bool{true, true, false}; !slices.Equal(swept.asked(), want) {
			t.Errorf("flows were swept with force %v, want %v", swept.asked(), want)
		}
	})
}

// TestHost: addresses are read at the start and when they move, not otherwise, and while
// they cannot be read nothing is written.
func TestHost(t *testing.T) {
	var reads atomic.Int32
	change := func(b *bench, c *Config) {
		read := c.Host
		c.Host = func() (topology.Host, error) { reads.Add(1); return read() }
		b.here.failures = 1
		b.src.set(someSnapshot("1"))
	}
	run(t, change, func(t *testing.T, b *bench) {
		b.expectStarts(t)
		if r := b.seen.all(); len(r) != 1 || r[0].Err == nil {
			t.Errorf("Results %v, want one with an error", r)
		}
		b.at(30 * s)
		b.expectStarts(t, 1*s, 11*s, 21*s)
		if reads.Load() != 2 {
			t.Errorf("addresses were read %d times, want 2", reads.Load())
		}
		b.here.set(topology.Host{IPv6: true, Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, 0)
		synctest.Wait()
		b.expectStarts(t, 1*s, 11*s, 21*s, 30*s)
		if r := b.seen.all(); !r[len(r)-1].Snapshot.Host.IPv6 || reads.Load() != 3 {
			t.Errorf("after a move: %d reads, Host %+v", reads.Load(), r[len(r)-1].Snapshot.Host)
		}
	})
}

// TestHostWithoutWatch: without a signal of changed addresses, every run reads them.
func TestHostWithoutWatch(t *testing.T) {
	run(t, func(b *bench, c *Config) { c.HostMoved = nil; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.here.set(topology.Host{IPv6: true}, 0)
		b.at(11 * s)
		if r := b.seen.all(); !r[len(r)-1].Snapshot.Host.IPv6 {
			t.Errorf("the verification works with Host %+v", r[len(r)-1].Snapshot.Host)
		}
	})
}

// TestLastKeys: an annotation that breaks keeps the keys it had.
func TestLastKeys(t *testing.T) {
	annotated := func(text string) topology.Snapshot {
		snapshot := someSnapshot(text)
		snapshot.Services[0].Annotations = map[string]string{topology.AnnotationKeys: text}
		snapshot.Services[0].Spec.Type = corev1.ServiceTypeClusterIP
		return snapshot
	}
	run(t, func(b *bench, _ *Config) { b.src.set(annotated(`["zone"]`)) }, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.src.set(annotated(`["zone"`))
		b.at(7 * s)
		b.src.set(annotated(`[`))
		b.at(9 * s)
		for _, r := range b.seen.all() {
			if c := r.View.Ports[0].Closure; !slices.Equal(c.Keys, []string{"zone"}) {
				t.Errorf("keys in force %v, want [zone]", c.Keys)
			}
		}
		b.expectStarts(t, 0, 5*s, 7*s)
	})
}

func TestQueuedIsOldestChangeOfRun(t *testing.T) {
	run(t, func(b *bench, c *Config) { c.VerifyPeriod = 15 * s; b.src.set(someSnapshot("1")) }, func(t *testing.T, b *bench) {
		b.at(300 * ms)
		b.src.set(someSnapshot("2"))
		b.at(600 * ms)
		b.src.set(someSnapshot("3"))
		b.at(20 * s)
		var queued []time.Duration
		for _, r := range b.seen.all() {
			if r.Queued.IsZero() {
				queued = append(queued, -1)
			} else {
				queued = append(queued, r.Queued.Sub(b.began))
			}
		}
		if want := []time.Duration{0, 300 * ms, -1}; !slices.Equal(queued, want) {
			t.Errorf("Queued = %v, want %v", queued, want)
		}
	})
}

// TestAgain: what a Backend began is gone on with in the time that it asks for, without a new
// Snapshot and without reading the kernel back, and the verification comes when it is due.
func TestAgain(t *testing.T) {
	change := func(b *bench, c *Config) {
		b.backend.drains = 4
		b.src.set(someSnapshot("1"))
	}
	run(t, change, func(t *testing.T, b *bench) {
		b.at(5 * s)
		b.src.set(topology.Snapshot{Node: "a"})
		b.at(35 * s)
		b.expectStarts(t, 0, 5*s, 8*s, 10*s, 13*s, 16*s, 20*s, 30*s)
		for i, r := range b.seen.all() {
			if r.Queued.IsZero() != (i > 1) || r.Verify != slices.Contains([]int{0, 3, 6, 7}, i) || r.Snapshot.Node != "a" {
				t.Errorf("run %d: %+v", i, r)
			}
		}
		if n := len(b.backend.enforced().Services); n != 0 {
			t.Errorf("%d Services left", n)
		}
	})
}

// TestAgainKeepsMinPeriod: a Backend cannot make the loop spin, nor one that asks for later
// put off what another asks for.
func TestAgainKeepsMinPeriod(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{
		{0, 0, 0}, {5 * s, 0, 5 * s}, {0, 5 * s, 5 * s}, {5 * s, 3 * s, 3 * s}, {-1, 0, 0}, {-1, 2 * s, 2 * s},
	} {
		if got := sum(rules.Changes{Again: test.a}, rules.Changes{Again: test.b}).Again; got != test.want {
			t.Errorf("%v and %v: %v, want %v", test.a, test.b, got, test.want)
		}
	}
	begin := time.Now()
	after := schedule{min: s}.after(Result{End: begin, Verify: true, Changes: rules.Changes{Again: ms}})
	if at, known := after.due(false); !known || !at.Equal(begin.Add(s)) {
		t.Errorf("due %v, %t, want the minimum period after the end", at.Sub(begin), known)
	}
	if at, known := after.after(Result{End: begin.Add(s)}).due(false); known {
		t.Errorf("due %v although nobody asks any more", at)
	}
}
