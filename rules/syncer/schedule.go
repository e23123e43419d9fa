package syncer

import (
	"time"

	"gridproxy/rules"
)

const (
	firstRetry = time.Second
	lastRetry  = 10 * time.Second // where no verify period says otherwise
)

// schedule decides when the next run is due and whether it must verify. It is a value that
// is told the time and never asks for it.
type schedule struct {
	min, verify time.Duration // as Config has them

	ended    time.Time // of the last run; zero = none yet
	verified time.Time // end of the last run that verified and succeeded
	again    time.Time // when a Backend wants to go on with what the last run began; zero = none does
	failures int       // tries in a row
	retry    time.Time // while there are failures: when what failed is tried again
	partial  bool      // the last run failed, but not for every family
}

// due is when the next run should start, if dirty tells that something changed since the
// last one; false = not before something changes. While every family fails only the back-off
// counts: each retry reads the kernel back, so changes that started runs of their own would cost a
// read-back each. Where one family is written, its changes do not wait for the other: a Backend
// does not try again what failed before a run that verifies.
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
	} else if s.verify > 0 && !s.verified.IsZero() {
		sooner(s.verified.Add(s.verify))
	}
	if !s.again.IsZero() {
		sooner(s.again)
	}
	if earliest := s.ended.Add(s.min); known && !s.ended.IsZero() && at.Before(earliest) {
		at = earliest
	}
	return at, known
}

// mustVerify reports whether a run that starts now may not trust what was written before:
// nothing was, what failed is to be tried again, or it is time to.
func (s schedule) mustVerify(now time.Time) bool {
	if s.failures > 0 {
		return !s.partial || !now.Before(s.retry)
	}
	return s.verified.IsZero() || s.verify > 0 && !now.Before(s.verified.Add(s.verify))
}

// waits reports whether a run failed at nothing but what waits for its retry: it did not verify,
// and a family was written.
func (s schedule) waits(verify bool, families rules.Outcomes, err error) bool {
	return err != nil && s.failures > 0 && s.partial && !verify && isPartial(families)
}

// isPartial reports whether a family was written.
func isPartial(families rules.Outcomes) bool { return families.Synced() != rules.FamilySet{} }

// after is the schedule after a run that ended at end with err, and asked for another one in
// again; 0 = it did not. A run that failed is run again anyhow.
func (s schedule) after(end time.Time, verify bool, again time.Duration, families rules.Outcomes, err error) schedule {
	waits := s.waits(verify, families, err)
	s.ended, s.again, s.partial = end, time.Time{}, err != nil && isPartial(families)
	if again > 0 && (err == nil || s.partial) {
		s.again = end.Add(again)
	}
	if err != nil {
		if !waits {
			s.failures++
			s.retry = end.Add(max(s.backoff(), s.min))
		}
		return s
	}
	s.failures, s.retry = 0, time.Time{}
	if verify {
		s.verified = end
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
