package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/state"
)

// When a Keeper writes: the first change after firstWrite, so that a burst is one write, and later
// ones writePeriod after the last write, because flash memory wears out.
const (
	firstWrite  = 5 * time.Second
	writePeriod = time.Minute
)

// Keeper writes the last enforced Snapshot to a Store. Nothing waits for it.
type Keeper struct {
	store  *Store
	report func(error)
	now    func() time.Time
	wake   chan struct{}

	writing sync.Mutex // held during a write

	mu     sync.Mutex
	latest topology.Snapshot
	plan   writePlan
	kept   Kept
}

// Kept is what a Keeper has done since it was made.
type Kept struct {
	Writes  int       // that succeeded
	Bytes   int64     // of the last one
	Written time.Time // end of the last one; zero = none
	Err     error     // of the last attempt
}

// KeeperConfig says where a Keeper writes.
type KeeperConfig struct {
	Store *Store
	// Report is called when writes begin to fail, fail for another reason, or succeed again (nil), by
	// the goroutine of Run. nil = no call.
	Report func(error)
	Now    func() time.Time // nil = time.Now
}

// NewKeeper makes a Keeper. saved is what the Store holds; the zero value = nothing that is known.
func NewKeeper(c KeeperConfig, saved topology.Snapshot) *Keeper {
	k := &Keeper{store: c.Store, report: c.Report, now: c.Now, wake: make(chan struct{}, 1), latest: saved}
	if k.report == nil {
		k.report = func(error) {}
	}
	if k.now == nil {
		k.now = time.Now
	}
	return k
}

// Enforced notes a Snapshot that the kernel enforces now. One that was read from disk is there
// already, and so is one with the same content.
func (k *Keeper) Enforced(s topology.Snapshot) {
	if !s.Saved.IsZero() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if state.Same(k.latest, s) {
		return
	}
	k.latest = s
	k.plan = k.plan.changed(k.now())
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Kept is what was done so far. Safe for concurrent use.
func (k *Keeper) Kept() Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept
}

// Run writes until ctx ends, and returns nil. Flush then writes the rest.
func (k *Keeper) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		k.mu.Lock()
		at, due := k.plan.due()
		k.mu.Unlock()
		wait := at.Sub(k.now())
		switch {
		case ctx.Err() != nil:
			return nil
		case due && wait <= 0:
			k.write()
			continue // it may have failed
		}
		var timed <-chan time.Time
		if due {
			timer.Reset(wait)
			timed = timer.C
		}
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-timed:
		}
	}
}

// Flush writes what was not written yet, at once: the process is about to end.
func (k *Keeper) Flush() {
	k.mu.Lock()
	_, due := k.plan.due()
	k.mu.Unlock()
	if due {
		k.write()
	}
}

// write writes the latest Snapshot. What is enforced meanwhile is another change.
func (k *Keeper) write() {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	s, at := k.latest, k.now()
	k.plan = k.plan.written(at)
	before := k.kept.Err
	k.mu.Unlock()
	size, err := k.store.Save(s, at)
	k.mu.Lock()
	if k.kept.Err = err; err == nil {
		k.kept.Writes, k.kept.Bytes, k.kept.Written = k.kept.Writes+1, size, k.now()
	} else {
		k.plan = k.plan.failed(err)
	}
	k.mu.Unlock()
	if (before == nil) != (err == nil) || err != nil && before.Error() != err.Error() {
		k.report(err)
	}
}

// writePlan decides when to write. The zero value is that of a Store that holds everything. Pure.
type writePlan struct {
	change time.Time // the oldest one that is not written; zero = none
	last   time.Time // the last write, or attempt; zero = none
}

func (p writePlan) changed(now time.Time) writePlan {
	if p.change.IsZero() {
		p.change = now
	}
	return p
}

// written is p after a write began.
func (p writePlan) written(now time.Time) writePlan { return writePlan{last: now} }

// failed is p after that write failed: it is tried again, unless only another Snapshot can succeed.
func (p writePlan) failed(err error) writePlan {
	if !errors.Is(err, state.ErrTooLarge) {
		p = p.changed(p.last)
	}
	return p
}

// due is when to write; false = there is nothing to write.
func (p writePlan) due() (time.Time, bool) {
	at := p.change.Add(firstWrite)
	if again := p.last.Add(writePeriod); !p.last.IsZero() && again.After(at) {
		at = again
	}
	return at, !p.change.IsZero()
}
