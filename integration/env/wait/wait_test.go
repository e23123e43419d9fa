package wait

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errNotYet = errors.New("not yet")

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := For(t.Context(), func(context.Context) error {
			asked++
			return Check(asked == 5, "asked %d times", asked)
		})
		if err != nil || asked != 5 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// TestLastError: what ctx cut short says less than what was seen before.
func TestLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := Timeout(3).For(t.Context(), func(ctx context.Context) error {
			if asked++; asked == 1 {
				return errNotYet
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, errNotYet) || !strings.Contains(err.Error(), "3 turns") {
			t.Errorf("For returned %v", err)
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		err := For(t.Context(), func(context.Context) error { asked++; return Stop(errNotYet) })
		if err != errNotYet || asked != 1 { //nolint:errorlint // it is that very error
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// TestStandstill: time in which the process does not run is not taken from its timeout.
func TestStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		ticks := make(chan time.Time)
		go Timeout(2).spend(ctx, ticks, cancel)
		ticks <- time.Now()
		time.Sleep(24 * time.Hour)
		if ctx.Err() != nil {
			t.Errorf("over after one turn: %v", context.Cause(ctx))
		}
		ticks <- time.Now()
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("not over after two turns")
		}
	})
}

// TestContext: a context ends with its timeout, and says so.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := Timeout(3).Context(t)
		<-ctx.Done()
		if err := context.Cause(ctx); !strings.Contains(err.Error(), "3 turns") {
			t.Errorf("the context ended with %v", err)
		}
	})
}

// TestUntilEndsTheTest: the failure names the state and what was seen last.
func TestUntilEndsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		Until(r, "the Grid is there", func() error { return Check(false, "not %s", "yet") })
		for _, want := range []string{"the Grid is there", "not yet"} {
			if !strings.Contains(r.text, want) {
				t.Errorf("the failure does not say %q: %s", want, r.text)
			}
		}
	})
}

// grid is an Object that is in the next state at each question.
type grid struct {
	states []struct{ spec, observed, writing int }
	asked  int
}

func (g *grid) String() string { return "grid" }

func (g *grid) Generations() (spec, observed int64, err error) {
	if g.asked++; g.asked == 1 {
		return 0, 0, errNotYet
	}
	s := g.states[g.asked-2]
	return int64(s.spec), int64(s.observed), nil
}

func (g *grid) Writing() int { return g.states[g.asked-2].writing }

// TestWritten: neither an older generation is enough, nor a status while a write is under way.
func TestWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &grid{states: []struct{ spec, observed, writing int }{{3, 2, 0}, {3, 3, 2}, {3, 3, 0}, {3, 3, 0}}}
		if Written(t, g); g.asked != 4 {
			t.Errorf("Written asked %d times, want 4", g.asked)
		}
	})
}

type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Fatalf(format string, args ...any) { r.text = fmt.Sprintf(format, args...) }

func TestReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, from := &recorder{TB: t}, make(chan int, 1)
		from <- 3
		if got := Receive(r, "a number", from); got != 3 || r.text != "" {
			t.Errorf("received %d, %s", got, r.text)
		}
		Receive(r, "another number", from)
		if !strings.Contains(r.text, "another number") {
			t.Errorf("the failure does not say what did not come: %q", r.text)
		}
	})
}
