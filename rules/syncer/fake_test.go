package syncer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"
)

// source is a Source that a test fills.
type source struct {
	mu       sync.Mutex
	snapshot topology.Snapshot
	whole    bool
	changed  chan struct{}
}

func newSource() *source { return &source{changed: make(chan struct{}, 1)} }

func (s *source) Changed() <-chan struct{} { return s.changed }

func (s *source) Snapshot() (topology.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot, s.whole
}

func (s *source) set(snapshot topology.Snapshot) {
	s.mu.Lock()
	s.snapshot, s.whole = snapshot, true
	s.mu.Unlock()
	notify(s.changed)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// machine is a Host that a test moves.
type machine struct {
	mu       sync.Mutex
	host     topology.Host
	failures int
	moved    chan struct{}
}

func newMachine() *machine { return &machine{moved: make(chan struct{}, 1)} }

func (m *machine) read() (topology.Host, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failures > 0 {
		m.failures--
		return topology.Host{}, errors.New("netlink is out of order")
	}
	return m.host, nil
}

func (m *machine) set(h topology.Host, failures int) {
	m.mu.Lock()
	m.host, m.failures = h, failures
	m.mu.Unlock()
	notify(m.moved)
}

// backend is a Backend with a kernel of its own. Like a real one it writes only what
// differs from what it believes to have written, and a failure leaves the kernel half
// written while it believes otherwise: only verify finds out.
type backend struct {
	t *testing.T

	mu       sync.Mutex    // of all that follows; set takes it
	took     time.Duration // how long a Sync takes, or each of its steps
	steps    int           // of a Sync, each is reported; 0 = no report
	reads    time.Duration // how long reading back takes, of a processor too
	drains   int           // Syncs that go on with a removal until the kernel holds nothing of it
	inside   bool
	believed rules.Ruleset
	kernel   kernel
	draining map[string]int // removals that are not done, with the Syncs that they still need
	failures int
	unknown  bool // what the kernel holds, after a failure
	calls    []call
}

// drainTick is after what time the backend wants to continue a removal.
const drainTick = 3 * time.Second

// call is what a Sync was asked, and when.
type call struct {
	start, end time.Time
	verify     bool
	failed     bool
}

// kernel is what is enforced.
type kernel struct {
	services map[string]*rules.Service
	rest     rules.Ruleset // without Services
}

func (b *backend) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	b.mu.Lock()
	if b.inside {
		b.t.Error("two runs overlap")
	}
	b.inside = true
	steps, took := b.steps, b.took
	b.mu.Unlock()
	start := time.Now()
	read, verifyTime := b.read(ctx, verify)
	interrupted := false
	for range max(steps, 1) {
		select {
		case <-time.After(took):
			if steps > 0 {
				rules.Progress(ctx)
			}
		case <-ctx.Done():
			interrupted = true
		}
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside = false
	if interrupted {
		b.calls = append(b.calls, call{start: start, end: time.Now(), verify: verify, failed: true})
		return rules.Changes{}, context.Cause(ctx)
	}
	b.calls = append(b.calls, call{start: start, end: time.Now(), verify: verify, failed: b.failures > 0})
	changes := rules.Changes{Verified: read, Interrupted: verify && !read, VerifyTime: verifyTime}
	if read {
		changes.Repaired = b.readBack()
	}
	write := changedServices(b.believed, want)
	b.believed = want
	if b.kernel.services == nil {
		b.kernel.services = make(map[string]*rules.Service)
	}
	if b.failures > 0 {
		b.failures--
		b.unknown = true
		for name := range write {
			b.kernel.services[name] = nil // half written
		}
		b.kernel.rest = rules.Ruleset{}
		return changes, errors.New("line 3 failed")
	}
	b.unknown = false
	b.drain(write)
	b.kernel.apply(write)
	if len(b.draining) > 0 {
		changes.Again = drainTick
	}
	b.kernel.rest = want
	b.kernel.rest.Services = nil
	changes.Chains = len(write)
	return changes, nil
}

// read lets the time of a read-back pass. It reports whether it was not interrupted.
func (b *backend) read(ctx context.Context, verify bool) (complete bool, took time.Duration) {
	if !verify {
		return false, 0
	}
	b.mu.Lock()
	known, reads := b.kernel.services != nil && !b.unknown, b.reads
	b.mu.Unlock()
	begin, reading := time.Now(), ctx
	if known {
		var end context.CancelFunc
		reading, end = rules.Reading(ctx)
		defer end()
	}
	if reading.Err() != nil {
		return false, 0
	}
	select {
	case <-reading.Done():
	case <-time.After(reads):
		complete = true
	}
	return complete, time.Since(begin)
}

// drain turns removals into drains if the backend has any, and continues those that it began
// earlier.
func (b *backend) drain(write map[string]*rules.Service) {
	if b.draining == nil {
		b.draining = make(map[string]int)
	}
	for name := range b.draining {
		if b.kernel.services[name] == nil || write[name] != nil {
			delete(b.draining, name) // gone, or wanted again
		}
	}
	for name, s := range write {
		if s == nil && b.draining[name] == 0 && b.drains > 0 && b.kernel.services[name] != nil {
			b.draining[name] = b.drains + 1
		}
	}
	for name := range b.draining {
		if b.draining[name]--; b.draining[name] == 0 {
			delete(b.draining, name)
			write[name] = nil
		} else {
			delete(write, name)
		}
	}
}

// readBack makes what is believed what the kernel holds; it tells how much differed.
func (b *backend) readBack() (repaired int) {
	held := make(map[string]*rules.Service)
	for name, s := range b.kernel.services {
		if s != nil {
			held[name] = s
		}
	}
	believed := byName(b.believed)
	for name := range b.kernel.services {
		if held[name] != believed[name] && b.draining[name] == 0 {
			repaired++
		}
	}
	b.believed = rules.Ruleset{Services: slices.Collect(maps.Values(held))}
	b.kernel.services = held
	return repaired
}

func (k *kernel) apply(write map[string]*rules.Service) {
	for name, s := range write {
		if s == nil {
			delete(k.services, name)
		} else {
			k.services[name] = s
		}
	}
}

// changedServices is what to write where old is in the kernel; nil = remove.
func changedServices(old, want rules.Ruleset) map[string]*rules.Service {
	was, is := byName(old), byName(want)
	write := make(map[string]*rules.Service)
	for name := range was {
		if is[name] == nil {
			write[name] = nil
		}
	}
	for name, s := range is {
		if was[name] != s {
			write[name] = s
		}
	}
	return write
}

func byName(r rules.Ruleset) map[string]*rules.Service {
	m := make(map[string]*rules.Service, len(r.Services))
	for _, s := range r.Services {
		m[nameOf(s)] = s
	}
	return m
}

func nameOf(s *rules.Service) string { return s.Name.String() + "/" + string(s.Name.Protocol) }

func (b *backend) Cleanup(context.Context) error {
	b.t.Error("the loop must never clean up")
	return nil
}

// set changes the backend while a Syncer runs with it, from the next Sync on.
func (b *backend) set(change func(*backend)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

func (b *backend) fail(n int) { b.set(func(k *backend) { k.failures = n }) }

// tamper deletes one Service from the kernel behind the Backend's back.
func (b *backend) tamper() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if names := slices.Sorted(maps.Keys(b.kernel.services)); len(names) > 0 {
		b.kernel.services[names[0]] = nil
	}
}

func (b *backend) history() []call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// enforced is the kernel's state as a Ruleset.
func (b *backend) enforced() rules.Ruleset {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.kernel.rest
	for _, name := range slices.Sorted(maps.Keys(b.kernel.services)) {
		r.Services = append(r.Services, b.kernel.services[name])
	}
	return r
}

// observer keeps every Result.
type observer struct {
	mu      sync.Mutex
	results []Result
}

func (o *observer) Synced(r Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.results = append(o.results, r)
}

func (o *observer) all() []Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.results)
}
