package syncer

import (
	"context"
	"sync"
	"time"

	"gridproxy/rules"
)

// inbox records changes while a run may be in progress. If a run hangs, the time of the oldest
// change that the kernel does not hold yet stays the same. Safe for concurrent use.
type inbox struct {
	wake chan struct{} // one receive after any number of changes

	mu        sync.Mutex
	queued    time.Time    // the oldest change that no run has taken up
	taken     [2]time.Time // by family: the oldest change of the run in progress, or of failed ones before it
	hostMoved bool
	leftOut   [2]bool      // by family, as the last run said
	succeeded [2]time.Time // by family: end of the last run that did
	running   time.Time    // start of the run in progress
	progress  time.Time    // of the run in progress: its last step, at first its start
	changed   func()       // called at the next change; nil = none waits for it
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// listen notes changes until ctx ends.
func (b *inbox) listen(ctx context.Context, source, host <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-source:
			if !open {
				source = nil
				continue
			}
			b.note(false)
		case _, open := <-host:
			if !open {
				host = nil
				continue
			}
			b.note(true)
		}
	}
}

func (b *inbox) note(host bool) {
	b.mu.Lock()
	if b.queued.IsZero() {
		b.queued = time.Now()
	}
	b.hostMoved = b.hostMoved || host
	changed := b.changed
	b.mu.Unlock()
	if changed != nil {
		changed()
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// dirty reports whether a change waits for a run.
func (b *inbox) dirty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.queued.IsZero()
}

// onChange calls changed for each change from now on, and at once if one waits already, until the
// returned func is called. changed must not block.
func (b *inbox) onChange(changed func()) (stop func()) {
	b.mu.Lock()
	b.changed = changed
	waits := !b.queued.IsZero()
	b.mu.Unlock()
	if waits {
		changed()
	}
	return func() {
		b.mu.Lock()
		b.changed = nil
		b.mu.Unlock()
	}
}

// begin notes that a run starts now. With take it assigns every change to it, and returns the
// time of the oldest one (zero = none) and whether this machine's addresses may have changed.
func (b *inbox) begin(start time.Time, take bool) (oldest time.Time, hostMoved bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.progress = start, start
	if !take {
		return time.Time{}, false
	}
	for f := range b.taken {
		if b.taken[f].IsZero() {
			b.taken[f] = b.queued
		}
		oldest = earlier(oldest, b.taken[f])
	}
	hostMoved = b.hostMoved
	b.queued, b.hostMoved = time.Time{}, false
	return oldest, hostMoved
}

// earlier returns the earlier of two times. It ignores a zero time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// done records how the run that took changes ended. Changes of a family that failed stay pending. A
// failed verification is pending since its start at the latest. A family that is left out has
// nothing pending.
func (b *inbox) done(start, end time.Time, families rules.Outcomes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running, b.progress = time.Time{}, time.Time{}
	for f, o := range families {
		b.leftOut[f] = o.LeftOut != nil
		switch {
		case o.Synced():
			b.taken[f], b.succeeded[f] = time.Time{}, end
		case o.LeftOut != nil:
			b.taken[f] = time.Time{}
		case b.taken[f].IsZero():
			b.taken[f] = start
		}
	}
}

// pending returns the time of a family's oldest change that the kernel does not hold yet, or
// the start of the run in progress, which may find that the kernel lacks something. Zero =
// neither.
func (b *inbox) pending(f rules.Family) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.taken[f].IsZero():
		return b.taken[f]
	case !b.running.IsZero() && !b.leftOut[f]:
		return earlier(b.running, b.queued)
	default:
		return b.queued
	}
}

// step notes that the run in progress made progress.
func (b *inbox) step() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running.IsZero() {
		b.progress = time.Now()
	}
}

// lastStep returns when the run in progress last made progress; zero = no run is in progress.
func (b *inbox) lastStep() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.progress
}

func (b *inbox) lastSuccess(f rules.Family) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded[f]
}

// forget drops what was taken: there is nothing yet that the kernel should hold.
func (b *inbox) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken, b.running, b.progress = [2]time.Time{}, time.Time{}, time.Time{}
}
