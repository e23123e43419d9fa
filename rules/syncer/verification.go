package syncer

import "time"

// rest returns the time without a verification after one of this cost.
func rest(cost time.Duration) time.Duration {
	if cost > verifyDelayMax/verifyDelayFactor {
		return verifyDelayMax
	}
	return verifyDelayFactor * cost
}

// verification decides when the kernel is read back although nothing failed. It is a value that
// receives the time.
//
// A cost is rules.Changes.VerifyTime: processor time, because that is what other programs on the
// machine miss. The time that a reading waits for a busy processor is no cost.
type verification struct {
	configured time.Duration // the shortest period; 0 = no verification

	done  time.Time     // end of the last one that was completed, or of what took its place
	cost  time.Duration // of that one
	tried time.Time     // end of the last one, also of one that was interrupted
	spent time.Duration // by that one
}

// period returns the time from the end of a verification to the start of the next.
func (v verification) period() time.Duration { return max(v.configured, rest(v.cost)) }

// next decides when the next verification may start; false = not before the next run. pending says
// that a change waits to be written. wrote is the end of the last run if it wrote changes, else
// zero. From firm on, a verification is not interrupted by changes.
//
// A verification starts a period after the last one, and never while a change waits. If it is
// interrupted, it starts again after a rest for what it has cost. Changes cannot put it off for
// ever: from firm on it follows a run that wrote changes, even if more of them wait. Three periods
// after a verification the next one has therefore started, unless the run before it takes longer.
func (v verification) next(pending bool, wrote time.Time) (at, firm time.Time, ok bool) {
	if v.configured <= 0 || v.done.IsZero() {
		return time.Time{}, time.Time{}, false
	}
	at, firm = v.done.Add(v.period()), v.done.Add(overduePeriods*v.period())
	if rested := v.tried.Add(rest(v.spent)); at.Before(rested) {
		at = rested
	}
	if !pending {
		return at, firm, true
	}
	return wrote, firm, !wrote.IsZero() && !wrote.Before(firm) && !wrote.Before(at)
}

// after returns v after a run that verified, given its end and cost, and whether the
// verification was completed.
func (v verification) after(end time.Time, cost time.Duration, completed bool) verification {
	v.tried, v.spent = end, cost
	if completed {
		v.done, v.cost = end, cost
	}
	return v
}
