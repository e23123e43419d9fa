package watch

import (
	"context"
	"sync"
	"time"

	"gridproxy/topology"
)

// longCut is how long the API server must have been away for its return to be the end of a cut.
const longCut = 20 * time.Second

// GraceConfig says how endpoints are held.
type GraceConfig struct {
	Grace time.Duration // how long at most
	// Losses are those of the API server: the present one, and the last one that has ended.
	Losses func() (now Loss, last PastLoss)
	// Saved is what an earlier process enforced. If the API server was missed before the first
	// Snapshot, that may bring a wave. The zero value = nothing is known of it.
	Saved topology.Snapshot
	Now   func() time.Time // nil = time.Now
	// Report is called when the first endpoints of a wave are held, with them, and with none when
	// none is held any more. It must not block. nil = no call.
	Report func([]topology.HeldEndpoint)
}

// PastLoss is a time without API server that is over.
type PastLoss struct{ Since, End time.Time }

// Grace is a Source that holds endpoints in waves (topology.Waves): after a cut of the API server
// of at least longCut, and when the first Snapshot of the cluster follows a saved one.
type Grace struct {
	config  GraceConfig
	source  Source
	changed pulse

	mu    sync.Mutex
	last  topology.Snapshot // that was handed out
	whole bool              // there is one
	cut   *topology.Cut     // the latest; nil = there was none
	since time.Time         // of cut, if the API server was away
	waves topology.Waves
	timer *time.Timer // sends at waves.Until
	held  int         // endpoints, as of the last Report
}

// NewGrace makes the Source.
func NewGrace(s Source, c GraceConfig) *Grace {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Report == nil {
		c.Report = func([]topology.HeldEndpoint) {}
	}
	return &Grace{config: c, source: s, changed: newPulse()}
}

// Run runs the source.
func (g *Grace) Run(ctx context.Context) error {
	err := forward(ctx, g.source, g.changed.send)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
	return err
}

// Changed receives after a change in the source, and when endpoints are released.
func (g *Grace) Changed() <-chan struct{} { return g.changed }

// Held returns the endpoints that are held now. Safe for concurrent use.
func (g *Grace) Held() []topology.HeldEndpoint {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waves.Held(g.config.Now())
}

// Snapshot returns that of the source, in which the endpoints that are held are ready.
func (g *Grace) Snapshot() (topology.Snapshot, bool) {
	s, whole := g.source.Snapshot() // may ask the kernel: not under the lock, which Held takes
	g.mu.Lock()
	defer g.mu.Unlock()
	if !whole {
		return s, false
	}
	now := g.config.Now()
	g.noteCut(s, now)
	g.waves, s = g.waves.Hold(s, g.cut, g.config.Grace, now)
	g.last, g.whole = s, true
	g.wake(now)
	return s, true
}

// noteCut finds out whether s may bring a wave.
func (g *Grace) noteCut(s topology.Snapshot, now time.Time) {
	lost, over := g.config.Losses()
	away := !lost.Since.IsZero() && now.Sub(lost.Since) >= longCut
	ended := !over.End.IsZero() && over.End.Sub(over.Since) >= longCut && !topology.Cut{End: over.End}.Over(now)
	missed := !lost.Since.IsZero() || !over.End.IsZero()
	switch {
	case !g.whole && missed && !g.config.Saved.Saved.IsZero() && s.Saved.IsZero():
		g.cut = &topology.Cut{Before: g.config.Saved, End: now}
	case !g.whole:
	case !g.last.Saved.IsZero() && s.Saved.IsZero(): // whatever the clock says
		g.cut, g.since = &topology.Cut{Before: g.last, End: now}, time.Time{}
	case away:
		g.begin(lost.Since)
	case ended:
		g.begin(over.Since)
		g.cut.End = over.End
	case g.cut != nil && (g.cut.End.IsZero() || g.cut.Over(now)):
		g.cut = nil
	}
}

// begin notes what was in force when the API server was lost at that time.
func (g *Grace) begin(since time.Time) {
	if g.cut == nil || !g.since.Equal(since) {
		g.cut, g.since = &topology.Cut{Before: g.last}, since
	}
}

// wake makes sure that the end of the grace is noticed, and reports what is held.
func (g *Grace) wake(now time.Time) {
	if g.timer != nil {
		g.timer.Stop()
	}
	if until := g.waves.Until(now); !until.IsZero() {
		g.timer = time.AfterFunc(until.Sub(now), g.changed.send)
	}
	held := g.waves.Held(now)
	if (g.held == 0) != (len(held) == 0) {
		g.config.Report(held)
	}
	g.held = len(held)
}

var _ Source = (*Grace)(nil)

// grace holds endpoints in waves (topology.Waves): after a cut of the API server of at least
// longCut, and when the first Snapshot of the cluster follows a saved one.
type grace struct {
	limit time.Duration // of each endpoint; 0 = none is held
	// saved is what an earlier process enforced: if the API server was missed before the first
	// Snapshot, that may bring a wave. nil = nothing is known of it.
	saved *topology.Snapshot

	last  *topology.Snapshot // that was handed out; nil = there was none
	cut   *topology.Cut      // the latest, never changed in place; nil = there was none
	since time.Time          // of cut, if the API server was away
	waves topology.Waves
	held  []topology.HeldEndpoint // when last was handed out
}

// Next decides which endpoints are held, and makes them ready in the Snapshot.
func (g grace) Next(f Facts) (after grace, s *topology.Snapshot, wake time.Time) {
	if g.limit <= 0 || f.Snapshot == nil {
		return g, f.Snapshot, g.waves.Until(f.Now)
	}
	g = g.noteCut(f)
	waves, enforced := g.waves.Hold(*f.Snapshot, g.cut, g.limit, f.Now)
	g.waves, g.held, g.last = waves, waves.Held(f.Now), &enforced
	return g, g.last, waves.Until(f.Now)
}

// noteCut finds out whether the Snapshot may bring a wave.
func (g grace) noteCut(f Facts) grace {
	lost, over := f.Loss, f.LastLoss
	away := !lost.Since.IsZero() && f.Now.Sub(lost.Since) >= longCut
	ended := !over.End.IsZero() && over.End.Sub(over.Since) >= longCut && !topology.Cut{End: over.End}.Over(f.Now)
	missed := !lost.Since.IsZero() || !over.End.IsZero()
	fresh := f.Snapshot.Saved.IsZero()
	switch {
	case g.last == nil && missed && fresh && g.saved != nil:
		g.cut = &topology.Cut{Before: *g.saved, End: f.Now}
	case g.last == nil:
	case !g.last.Saved.IsZero() && fresh: // whatever the clock says
		g.cut, g.since = &topology.Cut{Before: *g.last, End: f.Now}, time.Time{}
	case away:
		g = g.begin(lost.Since)
	case ended:
		g = g.begin(over.Since)
		g.cut = &topology.Cut{Before: g.cut.Before, End: over.End}
	case g.cut != nil && (g.cut.End.IsZero() || g.cut.Over(f.Now)):
		g.cut = nil
	}
	return g
}

// begin notes what was in force when the API server was lost at that time.
func (g grace) begin(since time.Time) grace {
	if g.cut == nil || !g.since.Equal(since) {
		g.cut, g.since = &topology.Cut{Before: *g.last}, since
	}
	return g
}
