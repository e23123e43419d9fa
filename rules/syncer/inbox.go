package syncer

import (
	"context"
	"sync"
	"time"
)

// inbox notes changes while a run may be under way, so that a run that hangs shows: the
// time of the oldest change that the kernel does not hold yet stands still. Safe for
// concurrent use.
type inbox struct {
	wake chan struct{} // one receive after any number of changes

	mu        sync.Mutex
	queued    time.Time // the oldest change that no run has taken up; zero = none
	taken     time.Time // the oldest change of the run under way, or of failed ones before it
	hostMoved bool
	succeeded time.Time // end of the last run that did
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
	b.mu.Unlock()
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

// take hands every change to a run that starts now.
func (b *inbox) take() (oldest time.Time, hostMoved bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken.IsZero() {
		b.taken = b.queued
	}
	hostMoved = b.hostMoved
	b.queued, b.hostMoved = time.Time{}, false
	return b.taken, hostMoved
}

// done tells how the run that took changes ended. Those of a failed one stay pending, and
// so does what a failed verification found: since its start, at the latest, the kernel may
// not hold what it should.
func (b *inbox) done(start, end time.Time, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.taken, b.succeeded = time.Time{}, end
	case b.taken.IsZero():
		b.taken = start
	}
}

// pending is the oldest change that the kernel does not hold yet; zero = none.
func (b *inbox) pending() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken.IsZero() {
		return b.queued
	}
	return b.taken
}

func (b *inbox) lastSuccess() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded
}

// forget drops what was taken: there is nothing yet that the kernel should hold.
func (b *inbox) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = time.Time{}
}
