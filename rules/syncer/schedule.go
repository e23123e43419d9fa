package syncer

import "time"

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
	failures int       // runs in a row
}

// due is when the next run should start, if dirty tells that something changed since the
// last one; false = not before something changes. While runs fail only the back-off counts:
// every retry reads the kernel back, so changes that started runs of their own would cost a
// read-back each.
func (s schedule) due(dirty bool) (time.Time, bool) {
	if s.failures > 0 {
		return s.ended.Add(max(s.backoff(), s.min)), true
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
	if s.verify > 0 && !s.verified.IsZero() {
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
// nothing was, the last run failed, or it is time to.
func (s schedule) mustVerify(now time.Time) bool {
	return s.verified.IsZero() || s.failures > 0 || s.verify > 0 && !now.Before(s.verified.Add(s.verify))
}

// after is the schedule after a run that ended at end and asked for another one in again; 0 =
// it did not. A run that failed is run again anyhow.
func (s schedule) after(end time.Time, verify bool, again time.Duration, err error) schedule {
	s.ended, s.again = end, time.Time{}
	if err != nil {
		s.failures++
		return s
	}
	s.failures = 0
	if again > 0 {
		s.again = end.Add(again)
	}
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
