package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/state"
)

// When a Saver writes: the first change after firstWrite, so that a burst is one write, and later
// ones writePeriod after the last write, because flash memory wears out.
const (
	firstWrite  = 5 * time.Second
	writePeriod = time.Minute
)

// Saver writes the last enforced Snapshot to a Store. Nothing waits for it.
type Saver struct {
	store  *Store
	report func(error)
	wake   pulse

	writing sync.Mutex // held during a write

	mu     sync.Mutex
	latest topology.Snapshot
	plan   writePlan
	stats  SaveStats
}

// SaveStats counts what a Saver has written since it was made.
type SaveStats struct {
	Writes  int       // that succeeded
	Bytes   int64     // of the last one
	Written time.Time // end of the last one; zero = none
	Err     error     // of the last attempt
}

// SaverConfig says where a Saver writes.
type SaverConfig struct {
	Store *Store
	// Report is called when writes begin to fail, fail for another reason, or succeed again (nil), by
	// the goroutine of Run. nil = no call.
	Report func(error)
}

// NewSaver makes a Saver. saved is what the Store holds; the zero value = nothing that is known.
func NewSaver(c SaverConfig, saved topology.Snapshot) *Saver {
	w := &Saver{store: c.Store, report: c.Report, wake: newPulse(), latest: saved}
	if w.report == nil {
		w.report = func(error) {}
	}
	return w
}

// Enforced notes a Snapshot that the kernel enforces now, for Run to write. One that was read
// from disk is there already, and so is one with the same content.
func (w *Saver) Enforced(s topology.Snapshot) {
	if !s.Saved.IsZero() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if state.Same(w.latest, s) {
		return
	}
	w.latest = s
	w.plan = w.plan.changed(time.Now())
	w.wake.send()
}

// Stats returns what was written so far. Safe for concurrent use.
func (w *Saver) Stats() SaveStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Run writes until ctx ends, and returns nil: errors are reported. Flush writes the rest.
func (w *Saver) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		w.mu.Lock()
		at, due := w.plan.due()
		w.mu.Unlock()
		var timed <-chan time.Time // never, while there is nothing to write
		if due {
			timed = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timed:
			w.Flush() // if it fails, it is due again
		}
	}
	return nil
}

// Flush writes what was not written yet, at once, as before the process ends.
func (w *Saver) Flush() {
	w.mu.Lock()
	_, due := w.plan.due()
	w.mu.Unlock()
	if due {
		w.write()
	}
}

// write writes the latest Snapshot, and notes the outcome. A later one is another change.
func (w *Saver) write() {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	s, at := w.latest, time.Now()
	w.plan = w.plan.written(at)
	before := w.stats.Err
	w.mu.Unlock()
	size, err := w.store.Save(s, at)
	w.mu.Lock()
	if w.stats.Err = err; err == nil {
		w.stats.Writes, w.stats.Bytes, w.stats.Written = w.stats.Writes+1, size, time.Now()
	} else {
		w.plan = w.plan.failed(err)
	}
	w.mu.Unlock()
	if (before == nil) != (err == nil) || err != nil && before.Error() != err.Error() {
		w.report(err)
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

// written returns p after a write began.
func (p writePlan) written(now time.Time) writePlan { return writePlan{last: now} }

// failed returns p after that write failed. It is due again, unless only another Snapshot can
// succeed.
func (p writePlan) failed(err error) writePlan {
	if !errors.Is(err, state.ErrTooLarge) {
		p = p.changed(p.last)
	}
	return p
}

// due returns when to write; false = there is nothing to write.
func (p writePlan) due() (time.Time, bool) {
	at := p.change.Add(firstWrite)
	if again := p.last.Add(writePeriod); !p.last.IsZero() && again.After(at) {
		at = again
	}
	return at, !p.change.IsZero()
}
