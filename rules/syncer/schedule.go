package syncer

import (
	"time"

	"gridproxy/rules"
)

const (
	firstRetry = time.Second
	lastRetry  = 10 * time.Second // where no verify period says otherwise

	// After a run that took longer than slowRun and failed for one family, that family is not
	// retried for slowPause times as long, up to lastPause. The other family's changes are written
	// meanwhile. Waiting for the xtables lock takes less than slowRun, so it is retried soon.
	slowRun   = 30 * time.Second
	slowPause = 10
	lastPause = 10 * time.Minute
)

// schedule decides when the next run is due and whether it must verify. It is a value that receives
// the time and never reads a clock.
type schedule struct {
	min, verify time.Duration // as Config has them

	ended    time.Time // of the last run; zero = none yet
	verified time.Time // end of the last run that verified and succeeded
	again    time.Time // when a Backend wants to go on with what the last run began; zero = none does
	failures int       // tries in a row
	retry    time.Time // while there are failures: when what failed is tried again

	failing rules.FamilySet // in the last run
	partial bool            // it failed, but another family was written
}

// due is when the next run should start, given whether something has changed since the last one
// (dirty); false = only after a change. While every family fails, only the back-off counts: each
// retry reads the kernel back, so runs for changes would be expensive. While one family is written,
// its changes do not wait for the other: a Backend retries what failed only in a run that verifies.
func (s schedule) due(dirty bool) (time.Time, bool) {
	if s.failures > 0 && !s.partial {
		return s.retry, true
	}
	var at time.Time
	var known bool
	sooner := func(t time.Time) {
		if !known || t.Before(at) {
			at, known = t, true
		}
	}
	if dirty {
		sooner(s.ended)
	}
	if s.failures > 0 {
		sooner(s.retry)
	} else if s.verify > 0 && !s.ended.IsZero() {
		since := s.verified
		if since.IsZero() { // all runs that verified failed, and what they failed at works by now
			since = s.ended
		}
		sooner(since.Add(s.verify))
	}
	if !s.again.IsZero() {
		sooner(s.again)
	}
	if earliest := s.ended.Add(s.min); known && !s.ended.IsZero() && at.Before(earliest) {
		at = earliest
	}
	return at, known
}

// mustVerify reports whether a run that starts now must read the kernel back: nothing was verified
// yet, a failure is to be retried, or the verify period is over.
func (s schedule) mustVerify(now time.Time) bool {
	if s.failures > 0 {
		return !s.partial || !now.Before(s.retry)
	}
	return s.verified.IsZero() || s.verify > 0 && !now.Before(s.verified.Add(s.verify))
}

// waits reports whether a run failed only because an earlier failure waits for its retry: it did
// not verify, a family was written, and no other family failed than before.
func (s schedule) waits(r Result) bool {
	return r.Err != nil && s.failures > 0 && s.partial && !r.Verify && isPartial(r) && !s.failsNewly(r)
}

// failsNewly reports whether a family fails that was written in the run before.
func (s schedule) failsNewly(r Result) bool {
	for f, failing := range failingIn(r) {
		if failing && !s.failing[f] {
			return true
		}
	}
	return false
}

func failingIn(r Result) (failing rules.FamilySet) {
	for f, o := range r.Changes.Families {
		failing[f] = o.Err != nil
	}
	return failing
}

// isPartial reports whether a run failed, but a family was written.
func isPartial(r Result) bool {
	return r.Err != nil && r.Changes.Families.Synced() != rules.FamilySet{}
}

// after is the schedule after a run. A failed run is always repeated.
func (s schedule) after(r Result) schedule {
	waits, beginning := s.waits(r), s.partial && s.failsNewly(r)
	s.ended, s.again, s.partial, s.failing = r.End, time.Time{}, isPartial(r), failingIn(r)
	if again := r.Changes.Again; again > 0 && (r.Err == nil || s.partial) {
		s.again = r.End.Add(again)
	}
	switch {
	case waits:
	case r.Err != nil:
		if beginning { // a family does not inherit the back-off of the other one
			s.failures = 0
		}
		s.failures++
		wait := max(s.backoff(), s.min)
		if took := r.End.Sub(r.Start); s.partial && took > slowRun {
			wait = max(wait, min(slowPause*took, lastPause))
		}
		s.retry = r.End.Add(wait)
	default:
		s.failures, s.retry = 0, time.Time{}
		if r.Verify {
			s.verified = r.End
		}
	}
	return s
}

// backoff doubles with each failure, up to the verify period.
func (s schedule) backoff() time.Duration {
	limit := s.verify
	if limit <= 0 {
		limit = lastRetry
	}
	wait := firstRetry
	for range s.failures - 1 {
		if wait >= limit {
			break
		}
		wait *= 2
	}
	return min(wait, max(limit, firstRetry))
}
