package syncer

import (
	"context"
	"log/slog"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"
)

// Syncer runs the loop.
type Syncer struct {
	config Config
	inbox  *inbox

	// What follows belongs to the goroutine of Run.
	schedule     schedule
	host         topology.Host
	hostKnown    bool // host need not be asked for again
	resolver     topology.Memo
	compiler     rules.Memo
	decided      Result // the last run that decided; holds while nothing changes
	hasDecided   bool   // there is one
	notedEarlier bool   // Flows know what was enforced before

	// written is the last run after which every Backend held the whole Ruleset and had no work left.
	// While the Ruleset stays equal, Backends are called only to verify.
	written *Result
}

// New makes a Syncer.
func New(c Config) *Syncer {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Syncer{
		config:   c,
		inbox:    newInbox(),
		schedule: schedule{min: c.MinSyncPeriod, verification: verification{configured: c.VerifyPeriod}},
	}
}

// Progress returns when the run in progress last made progress: its start, or the end of a later
// step of a Backend that was not killed (rules.Progress). It returns zero if no run is in progress.
// Safe for concurrent use.
func (s *Syncer) Progress() time.Time { return s.inbox.lastStep() }

// PendingOf returns the time of the oldest change of a family that the kernel does not hold yet, or
// zero if it holds everything or the family is left out. A failed verification counts as a change,
// and so does a run in progress, so that a run that hangs is noticed. Safe for concurrent use.
func (s *Syncer) PendingOf(f rules.Family) time.Time { return s.inbox.pending(f) }

// LastSuccessOf returns the end of the last run that wrote a family, or zero if none did. Safe for
// concurrent use.
func (s *Syncer) LastSuccessOf(f rules.Family) time.Time { return s.inbox.lastSuccess(f) }

// Run syncs until ctx ends and the run in progress has ended, which is interrupted after 3 seconds.
// It then returns nil. Nothing is written before the Source has a complete Snapshot, and nothing is
// removed at the end. Call it once.
func (s *Syncer) Run(ctx context.Context) error {
	changed, moved := s.config.Source.Changed(), s.config.HostMoved
	drain(changed) // the first run takes up all of this
	drain(moved)
	s.inbox.note(true)
	go s.inbox.listen(ctx, changed, moved)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if ctx.Err() != nil {
			return nil
		}
		now := time.Now()
		dirty := s.inbox.dirty()
		at, known := s.schedule.due(dirty)
		if known && !at.After(now) {
			s.step(ctx, now, dirty)
			continue
		}
		var due <-chan time.Time
		if known {
			timer.Reset(at.Sub(now))
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-s.inbox.wake:
		case <-due:
		}
	}
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}
