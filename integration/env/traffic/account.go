package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Loss is one connection that was lost.
type Loss struct {
	Way   Way
	Pod   string // of an open connection; "" for a short one
	Begin time.Time
	Took  time.Duration
	Err   error
}

// String says who lost what, when and why.
func (l Loss) String() string {
	what := "short"
	if l.Pod != "" {
		what = "open, to " + l.Pod
	}
	return fmt.Sprintf("%s, %s, at %s after %s: %v", l.Way, what, l.Begin.Format("15:04:05.000"), l.Took.Round(time.Millisecond), l.Err)
}

// Account is what became of connections during an event.
type Account struct {
	Event       string
	Took        time.Duration // from the begin of the event until all was counted
	Short       int           // connections that were made, lost ones included
	Open        int           // connections that were open before and asked at least once
	Lost        []Loss
	Resent      int           // short connections that had to send a packet again
	Slowest     time.Duration // of all answers, an opening counted with the first one
	SlowestAt   Way
	SlowestFlow bool // it was the answer on an open connection
	// Meanwhile is how many short connections were answered while the slowest answer was under way, on each
	// way in the mean: none if the machine was busy with something else, many if packets of this one were lost.
	Meanwhile float64

	slowestBegin time.Time
}

// Traffic is short connections and open ones together.
type Traffic struct {
	Calls *Calls
	Flows []*Flow
}

// During lets something happen and gives an account of all connections that were under way in the
// meantime, and of two more of each way and each Flow after it.
func (t *Traffic) During(ctx context.Context, event string, happen func() error) (Account, error) {
	begin := time.Now()
	if err := happen(); err != nil {
		return t.between(event, begin, time.Now()), fmt.Errorf("%s: %w", event, err)
	}
	err := t.more(ctx, 2)
	end := time.Now()
	err = errors.Join(err, t.Calls.Settle(ctx, end))
	return t.between(event, begin, end), err
}

// more waits for n more of everything that still goes on. What was lost is in the account.
func (t *Traffic) more(ctx context.Context, n int) error {
	var alive []*Flow
	for _, f := range t.Flows {
		if f.Lost() == nil {
			alive = append(alive, f)
		}
	}
	err := t.Calls.More(ctx, n)
	_ = Alive(ctx, n, alive...) // one that is lost meanwhile is in the account too
	return err
}

func (t *Traffic) between(event string, from, until time.Time) Account {
	a := Account{Event: event, Took: until.Sub(from)}
	calls := t.Calls.Between(from, until)
	for _, c := range calls {
		a.Short++
		a.slower(c.Way, c.Begin, c.Took, false)
		if c.Resent > 0 {
			a.Resent++
		}
		if c.Err != nil {
			a.Lost = append(a.Lost, Loss{Way: c.Way, Begin: c.Begin, Took: c.Took, Err: c.Err})
		}
	}
	for _, f := range t.Flows {
		asked, lost := f.between(from, until)
		for _, q := range asked {
			a.slower(f.Way, q.begin, q.took, true)
		}
		if len(asked) > 0 {
			a.Open++
		}
		if lost != nil {
			q := asked[len(asked)-1]
			a.Lost = append(a.Lost, Loss{Way: f.Way, Pod: f.Pod, Begin: q.begin, Took: q.took, Err: lost})
		}
	}
	a.Meanwhile = float64(a.meanwhile(calls)) / float64(max(1, len(t.Calls.ways)))
	return a
}

func (a *Account) slower(w Way, begin time.Time, took time.Duration, open bool) {
	if took > a.Slowest {
		a.Slowest, a.SlowestAt, a.SlowestFlow, a.slowestBegin = took, w, open, begin
	}
}

// meanwhile is how many of the short connections began and were answered while the slowest was under way.
func (a *Account) meanwhile(calls []Attempt) int {
	n, end := 0, a.slowestBegin.Add(a.Slowest)
	for _, c := range calls {
		if c.Err == nil && c.Begin.After(a.slowestBegin) && c.Begin.Add(c.Took).Before(end) {
			n++
		}
	}
	return n
}

// End ends everything, and gives an account of all there was, of the questions that were under way too.
func (t *Traffic) End() Account {
	t.Calls.End()
	End(t.Flows)
	all := t.between("all the time", time.Time{}, time.Now())
	all.Took = 0
	for _, c := range t.Calls.Between(time.Time{}, time.Now()) {
		all.Took = max(all.Took, time.Since(c.Begin))
	}
	return all
}

// Print writes a table of accounts.
func Print(w io.Writer, accounts ...Account) {
	width := len("event")
	for _, a := range accounts {
		width = max(width, len(a.Event))
	}
	fmt.Fprintf(w, "%-*s  %9s  %6s  %4s  %5s  %5s  %10s  %9s  %s\n", width, "event", "took", "short", "/s", "open", "lost", "sent again", "slowest", "which was")
	fmt.Fprintln(w, strings.Repeat("-", width+90))
	for _, a := range accounts {
		kind := "short"
		if a.SlowestFlow {
			kind = "open"
		}
		fmt.Fprintf(w, "%-*s  %9s  %6d  %4.0f  %5d  %5d  %10d  %9s  %s, %s\n", width, a.Event, a.Took.Round(10*time.Millisecond),
			a.Short, float64(a.Short)/a.Took.Seconds(), a.Open, len(a.Lost), a.Resent, a.Slowest.Round(time.Millisecond), kind, a.SlowestAt)
	}
}
