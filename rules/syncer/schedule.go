package syncer

import (
	"time"

	"gridproxy/rules"
)

// schedule decides when the next run is due and what it does. It is a value that receives the time
// and never reads a clock.
type schedule struct {
	min          time.Duration // as Config has it
	verification verification

	ended    time.Time // of the last run
	wrote    time.Time // end of the last run that was no verification alone
	again    time.Time // when a Backend wants to go on with what the last run began
	failures int       // tries in a row
	retry    time.Time // while there are failures: when what failed is tried again

	failing rules.FamilySet // in the last run
	partial bool            // it failed, but another family was written
}

// plan is what a run does. The zero value takes up changes and does not verify.
type plan struct {
	verify  bool    // the Backends are asked to verify
	alone   bool    // nothing else: changes that wait are left to the next run
	reading reading // of what the Backends could trust without reading
}

// reading says how long a run that verifies may read what the Backends could trust.
type reading uint8

const (
	toTheEnd reading = iota
	untilChange
	skipped // only what failed is read back
)

// due returns when the next run should start; false = only after a change. dirty reports
// whether something has changed since the last run.
func (s schedule) due(dirty bool) (time.Time, bool) {
	at, known := s.dueToWrite(dirty)
	if verify, ok := s.dueToVerify(dirty); ok && (!known || verify.Before(at)) {
		return verify, true
	}
	return at, known
}

// dueToWrite returns when a run should start that takes up changes, continues what a Backend
// began, or retries what failed; false = only after a change.
// While every family fails, only the back-off counts: each retry reads the kernel back, so runs
// for changes would be expensive. While one family is written, its changes do not wait for the
// other: a Backend retries what failed only in a run that verifies. The minimum period counts
// from such runs alone, so that a verification never puts a change off.
func (s schedule) dueToWrite(dirty bool) (time.Time, bool) {
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
	}
	if !s.again.IsZero() {
		sooner(s.again)
	}
	if earliest := s.wrote.Add(s.min); known && !s.wrote.IsZero() && at.Before(earliest) {
		at = earliest
	}
	return at, known
}

// dueToVerify returns when a run should start that only verifies; false = not before the next
// run. After a failure it returns false, because retries verify.
func (s schedule) dueToVerify(dirty bool) (time.Time, bool) {
	if s.failures > 0 {
		return time.Time{}, false
	}
	at, _, ok := s.nextVerification(dirty)
	return at, ok
}

// nextVerification returns what verification.next returns. What a Backend wants to continue
// immediately counts as a change that waits.
func (s schedule) nextVerification(dirty bool) (at, firm time.Time, ok bool) {
	soon := !s.again.IsZero() && !s.again.After(s.ended.Add(max(s.min, time.Millisecond)))
	var wrote time.Time
	if s.wrote.Equal(s.ended) {
		wrote = s.wrote
	}
	return s.verification.next(dirty || soon, wrote)
}

// plan returns what a run does that starts now. Changes come first, unless a verification is
// long overdue: see verification.next. What must be read because it failed, or because the run
// is the first, is read in any case. What the other families hold is read by the rules of a
// verification.
func (s schedule) plan(now time.Time, dirty bool) plan {
	at, firm, ok := s.nextVerification(dirty)
	until := untilChange
	switch {
	case !ok || now.Before(at):
		until = skipped
	case !now.Before(firm):
		until = toTheEnd
	}
	switch {
	case s.ended.IsZero():
		return plan{verify: true}
	case s.failures > 0:
		return plan{verify: !s.partial || !now.Before(s.retry), reading: until}
	case until == skipped:
		return plan{}
	}
	if write, known := s.dueToWrite(dirty); known && !write.After(now) && write.Before(at) {
		return plan{}
	}
	return plan{verify: true, alone: true, reading: until}
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

// after returns the schedule after a run. A failed run is always repeated.
func (s schedule) after(r Result) schedule {
	waits, beginning := s.waits(r), s.partial && s.failsNewly(r)
	s.ended, s.again, s.partial, s.failing = r.End, time.Time{}, isPartial(r), failingIn(r)
	if !r.plan.alone {
		s.wrote = r.End
	}
	s.verification = s.verificationAfter(r)
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
			wait = max(wait, min(slowDelayFactor*took, slowDelayMax))
		}
		s.retry = r.End.Add(wait)
	default:
		s.failures, s.retry = 0, time.Time{}
	}
	return s
}

// verificationAfter returns the verification after a run. After the first run that writes a
// family, it is known what that family holds, so the period counts from there: a family that
// fails from the start does not stop the verification of the other one. The cost of reading
// what that run wrote is not known yet. It is about that of writing, which is used if it is
// high.
func (s schedule) verificationAfter(r Result) verification {
	v := s.verification
	switch {
	case v.done.IsZero() && r.Err != nil && !isPartial(r):
		return v
	case v.done.IsZero():
		cost := r.Changes.VerifyTime
		if r.Changes.WriteTime >= costlyWrite {
			cost = max(cost, r.Changes.WriteTime)
		}
		return v.after(r.End, cost, true)
	case !r.Verify || r.plan.reading == skipped || r.Err != nil && !isPartial(r):
		return v
	default:
		return v.after(r.End, r.Changes.VerifyTime, !r.Changes.Interrupted)
	}
}

// backoff doubles with each failure, up to the verify period.
func (s schedule) backoff() time.Duration {
	limit := s.verification.configured
	if limit <= 0 {
		limit = retryDelayMax
	}
	wait := retryDelay
	for range s.failures - 1 {
		wait = min(2*wait, max(limit, retryDelay))
	}
	return wait
}
