package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/state"
)

// rememberedAfter is how long the API server may take before the saved state is used, where the
// kernel holds rules already.
const rememberedAfter = 10 * time.Second

// RememberedConfig says when a saved state is used.
type RememberedConfig struct {
	State state.State

	// Written reports whether the kernel holds rules of ours, which go on without a Snapshot. It is
	// asked at most once. nil = it does not: the saved state is used at once.
	Written func() bool
	Log     *slog.Logger // nil = none
}

// Remembered is a Source that has the saved Snapshot until its own source has one. After that it is
// its source, whatever becomes of it.
type Remembered struct {
	config  RememberedConfig
	source  Source
	changed pulse

	mu      sync.Mutex
	written func() bool // config.Written, once
	waited  bool        // rememberedAfter is over
	used    atomic.Bool // the saved Snapshot was handed out
	over    atomic.Bool // the source has had a Snapshot
}

// NewRemembered makes the Source.
func NewRemembered(s Source, c RememberedConfig) *Remembered {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Remembered{config: c, source: s, changed: newPulse(), written: func() bool { return false }}
	if c.Written != nil {
		r.written = sync.OnceValue(c.Written)
	}
	return r
}

// Run runs the source.
func (r *Remembered) Run(ctx context.Context) error {
	wait := time.AfterFunc(rememberedAfter, func() {
		r.mu.Lock()
		r.waited = true
		r.mu.Unlock()
		r.changed.send()
	})
	defer wait.Stop()
	return forward(ctx, r.source, r.changed.send)
}

// Changed receives after a change in the source, and when the saved Snapshot may be used.
func (r *Remembered) Changed() <-chan struct{} { return r.changed }

// InUse reports whether the saved Snapshot is in force. It does not wait while Snapshot asks
// the kernel for rules. Safe for concurrent use.
func (r *Remembered) InUse() bool { return r.used.Load() && !r.over.Load() }

// Snapshot returns that of the source, or the saved one. The first one of the source has the
// topology keys that were saved: it has none itself.
func (r *Remembered) Snapshot() (topology.Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, whole := r.source.Snapshot()
	switch saved := r.config.State.Snapshot; {
	case whole && !r.over.Load():
		r.over.Store(true)
		s.LastKeys = saved.LastKeys
		if r.used.Load() {
			r.config.Log.Info("the API server has been read; it takes the place of the saved state", "saved", saved.Saved)
		}
		return s, true
	case whole || r.over.Load():
		return s, whole
	case r.waited || !r.written():
		if !r.used.Swap(true) {
			r.config.Log.Warn("the API server has not been read yet: the saved state is in force until then", "saved", saved.Saved, "age", max(time.Since(saved.Saved), 0).Round(time.Second)) // the clock may be wrong after a boot
		}
		return saved, true
	default:
		return topology.Snapshot{}, false
	}
}

var _ Source = (*Remembered)(nil)

// remembered uses the saved Snapshot until the API server has been read. After that it uses none,
// whatever becomes of the API server.
type remembered struct {
	saved *topology.Snapshot // nil = none was read from disk
	from  time.Time          // from when on it is used although the kernel holds rules, which go on
	used  bool               // it was
	over  bool               // the API server has been read
}

// Next decides between a Snapshot of the API server and the saved one. The first one of the API
// server gets the topology keys that were saved: it has none itself.
func (r remembered) Next(f Facts) (after remembered, s *topology.Snapshot, wake time.Time) {
	switch {
	case r.saved == nil || r.over:
		return r, f.Snapshot, time.Time{}
	case f.Snapshot != nil:
		first := *f.Snapshot
		first.LastKeys, r.over = r.saved.LastKeys, true
		return r, &first, time.Time{}
	case !f.Now.Before(r.from) || !f.Written():
		r.used = true
		return r, r.saved, time.Time{}
	default:
		return r, nil, r.from
	}
}

// inUse reports whether the saved Snapshot is in force.
func (r remembered) inUse() bool { return r.used && !r.over }
