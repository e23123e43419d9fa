package localdns

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBackoffDoubles: queries go back at once after the first time that they left, and later each
// time that they leave doubles the wait, up to a minute. After five minutes it is the first time.
func TestBackoffDoubles(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b backoff
	for _, want := range []time.Duration{0, 2, 4, 8, 16, 32, 60, 60, 60, 60} {
		b = b.observed(now, false).after(now)
		if got := b.observed(now, true).wait(now); got != want*time.Second {
			t.Errorf("after %d times: %s, want %ds", len(b.left), got, want)
		}
		now = now.Add(time.Second)
	}
	b = b.observed(now, true)
	now = now.Add(20 * time.Second)
	if got, text := b.wait(now), b.describe(now); got != 40*time.Second || !strings.Contains(text, "well for 20s") || !strings.Contains(text, "must be for 1m0s") || !strings.Contains(text, "8 times within 5m0s") {
		t.Errorf("%s: %s", got, text)
	}
	b = b.observed(now, false).observed(now, true)
	if got := b.wait(now); got != time.Minute {
		t.Errorf("after a break: %s, want the whole minute", got)
	}
	now = now.Add(leftPeriod)
	if b = b.observed(now, false).after(now).observed(now, true); b.wait(now) != 0 {
		t.Errorf("after a long time: %s, want none", b.wait(now))
	}
}

// TestBackoffBounds: whatever the servers do, queries leave them at most ten times within five
// minutes; and they are back when servers have been well for a minute.
func TestBackoffBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var b backoff
		var left []time.Time
		local, since := false, now
		for _, step := range rapid.SliceOfN(rapid.Int64Range(1, 100), 200, 1000).Draw(t, "tenths") {
			now = now.Add(time.Duration(step) * 100 * time.Millisecond)
			well := rapid.IntRange(0, 3).Draw(t, "health") > 0
			if b = b.observed(now, well); !well {
				since = now
			}
			switch before := local; {
			case !well:
				if local = false; before {
					b, left = b.after(now), append(left, now)
				}
			case !local:
				local = b.wait(now) == 0
			}
			if !local && now.Sub(since) > returnDelayMax+10*time.Second {
				t.Fatalf("servers are well for %s, and queries are not back", now.Sub(since))
			}
			if n := len(left); n > 10 && left[n-1].Sub(left[n-11]) < leftPeriod {
				t.Fatalf("queries left 11 times within %s", left[n-1].Sub(left[n-11]))
			}
		}
	})
}
