package traffic

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLoadKnowsItself: a server that stands still loses questions. A load that stands still has not
// measured, or what is near that time counts as nothing.
func TestLoadKnowsItself(t *testing.T) {
	const second = time.Second
	between := func(from, until time.Duration) func(time.Duration) bool {
		return func(at time.Duration) bool { return from <= at && at < until }
	}
	never := between(0, 0)
	always := func(time.Duration) time.Duration { return 31 * time.Millisecond }
	runs := func(time.Duration) time.Duration { return 0 }
	stops := func(at time.Duration) time.Duration {
		if at == 5*second {
			return 2 * second
		}
		return 0
	}
	stutters := func(at time.Duration) time.Duration {
		if at%(200*time.Millisecond) == 0 {
			return 31 * time.Millisecond // the next send is 21 ms late
		}
		return 0
	}
	for _, test := range []struct {
		name                    string
		lasts                   time.Duration
		lost                    func(time.Duration) bool
		still                   func(time.Duration) time.Duration
		local, lose, void, late int // of 100 a second
		near                    int
		measured                bool
	}{
		{"all is well", 10 * second, never, runs, 1000, 0, 0, 0, 0, true},
		{"the server stops", 10 * second, between(5*second, 7*second), runs, 800, 200, 0, 0, 0, true},
		{"the load stops", 10 * second, never, stops, 803, 0, 0, 197, 197 + 2*10, true},
		{"the load stops in a long run", 60 * second, between(5*second, 5*second+1), stops, 5802, 0, 1, 197, 197 + 2*10, true},
		{"losses before the load stops", 60 * second, between(4*second, 4*second+second/10), stops, 5793, 10, 0, 197, 197 + 2*10, true},
		{"the load stops all the time, for a moment", 10 * second, between(2*second, 3*second), stutters, 855, 0, 95, 50, 992, false},
		{"the load stops all the time, and nothing is lost", 10 * second, never, stutters, 950, 0, 0, 50, 992, true},
		{"the load is nearly always late", 10 * second, never, always, 323, 0, 0, 675, 998, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.lasts-1)
				defer cancel()
				l := &Load{pacer: NewPacer(100), ways: []Way{{Name: "a server"}}}
				began := time.Now()
				next := func(context.Context, Way) (Ask, error) {
					at, outcome := time.Since(began), Local
					if test.lost(at) {
						outcome = Lost
					}
					time.Sleep(test.still(at))
					return func() Question { return Question{Outcome: outcome} }, nil
				}
				if err := l.ask(ctx, next, 0); err != nil {
					t.Fatal(err)
				}
				got := l.tally()
				found := [...]int{got.Count[Local], got.Count[Lost], got.Void, got.Late, got.Near, len(got.Failed)}
				if want := [...]int{test.local, test.lose, test.void, test.late, test.near, test.lose}; found != want {
					t.Errorf("local, lost, void, late, near, failed: %v, want %v", found, want)
				}
				if err := got.NotMeasured(0); (err == nil) != test.measured || err != nil && !strings.HasPrefix(err.Error(), "not measured: ") {
					t.Errorf("NotMeasured returned %v", err)
				}
				if err := got.NotMeasured(test.lose + test.void); err != nil && test.late < test.local {
					t.Errorf("all that failed may fail, and NotMeasured returned %v", err)
				}
			})
		})
	}
}
