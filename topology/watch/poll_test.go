package watch

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestPollPeriod: looking again without a notification takes at most a thousandth of the time,
// however many files there are, and happens at least once in the longest period.
func TestPollPeriod(t *testing.T) {
	for _, c := range []struct {
		took     time.Duration
		notified bool
		want     time.Duration
	}{
		{time.Millisecond, true, 10 * time.Second},
		{30 * time.Millisecond, true, 30 * time.Second},
		{30 * time.Millisecond, false, 10 * time.Second},
		{300 * time.Millisecond, false, 30 * time.Second},
		{time.Minute, true, pollMax},
	} {
		if got := pollPeriod(10*time.Second, c.took, c.notified); got != c.want {
			t.Errorf("after a look of %v, notified %v: the next one in %v, want %v", c.took, c.notified, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		poll := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "poll"))
		took := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "took"))
		notified := rapid.Bool().Draw(t, "notified")
		period := pollPeriod(poll, took, notified)
		if period < poll || period > max(poll, pollMax) || period < pollMax && period < 100*took {
			t.Fatalf("pollPeriod(%v, %v, %v) = %v", poll, took, notified, period)
		}
	})
}
