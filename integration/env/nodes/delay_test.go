package nodes

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestDelay: writes are held for times below the longest, which the seed decides, and no longer
// than their client waits.
func TestDelay(t *testing.T) {
	const longest = 800 * time.Millisecond
	t.Setenv(envDelay, longest.String())
	t.Setenv(envDelaySeed, "7")
	synctest.Test(t, func(t *testing.T) {
		held := func() (times []time.Duration) {
			d, err := newDelay()
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				begin := time.Now()
				if err := d.hold(t.Context()); err != nil {
					t.Fatal(err)
				}
				times = append(times, time.Since(begin))
			}
			return times
		}
		times := held()
		if again := held(); !slices.Equal(times, again) {
			t.Errorf("of one seed are %v and %v", times, again)
		}
		if least, most := slices.Min(times), slices.Max(times); least == most || most >= longest {
			t.Errorf("from %s to %s, want several times below %s", least, most, longest)
		}
		d, err := newDelay()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.hold(ctx); err == nil {
			t.Error("a write whose client has gone goes on")
		}
	})
}
