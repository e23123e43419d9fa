package watch

import (
	"time"

	"gridproxy/topology"
)

// longCut is how long the API server must have been away for its return to be the end of a cut.
const longCut = 20 * time.Second

// Grace holds endpoints in waves (topology.Waves): after a cut of the API server of at least
// longCut, and when the first Snapshot of the cluster follows a saved one.
type Grace struct {
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

// Next decides which endpoints are held, and makes them ready in the Snapshot; nil = f has
// none. wake is when the next of them is released; zero = none is held.
func (g Grace) Next(f Facts) (after Grace, s *topology.Snapshot, wake time.Time) {
	if g.limit <= 0 || f.Snapshot == nil {
		return g, f.Snapshot, g.waves.Until(f.Now)
	}
	g = g.noteCut(f)
	waves, enforced := g.waves.Hold(*f.Snapshot, g.cut, g.limit, f.Now)
	g.waves, g.held, g.last = waves, waves.Held(f.Now), &enforced
	return g, g.last, waves.Until(f.Now)
}

// noteCut returns g with the cut that may bring a wave; cut nil = there is none.
func (g Grace) noteCut(f Facts) Grace {
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

// begin returns g with a cut that began at that time, after what was handed out last.
func (g Grace) begin(since time.Time) Grace {
	if g.cut == nil || !g.since.Equal(since) {
		g.cut, g.since = &topology.Cut{Before: *g.last}, since
	}
	return g
}
