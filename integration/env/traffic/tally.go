package traffic

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is what became of one question.
type Outcome int

// The outcomes. Local and Remote are answers; which servers are local is up to the test.
const (
	Lost    Outcome = iota // no answer in time
	Refused                // the kernel reports that no process listens there
	Wrong                  // an answer that no server should give
	Local                  // by a server of the client's Node or unit
	Remote                 // by another server
)

func (o Outcome) String() string {
	return [...]string{"lost", "refused", "wrong", "local", "remote"}[o]
}

// Question is one question of a load.
type Question struct {
	Way     Way
	Due     time.Time
	Outcome Outcome
	Err     error // why it failed; nil if the outcome says it
}

// maxListed is how many failures List shows.
const maxListed = 20

// Tally counts what became of questions.
type Tally struct {
	Count  [Remote + 1]int // by outcome, without Void
	Failed []Question      // that were lost or refused, or whose answer was wrong
	Void   int             // lost or refused near a late send, which counts as nothing

	Sends, Late, Near int // of the Pacer: all, those that came late, those near a late one
}

// With returns the Tally with one question more.
func (t Tally) With(q Question) Tally {
	t.Count[q.Outcome]++
	if q.Outcome < Local {
		t.Failed = append(t.Failed, q)
	}
	return t
}

// NotMeasured returns an error if the load had too little processor time to tell whether more
// questions failed than are allowed. Sends that came late and lost nothing hide no failure.
func (t Tally) NotMeasured(allowed int) error {
	const remedy = "run the test again while the machine has less to do"
	if t.Late*2 > t.Sends {
		return fmt.Errorf("not measured: of %d sends %d were over %s late and left out, at most half may be: %s", t.Sends, t.Late, lateAfter, remedy)
	}
	if len(t.Failed) <= allowed && len(t.Failed)+t.Void > allowed && t.Near*2 > t.Sends {
		return fmt.Errorf("not measured: %d failures count as nothing, as those of %d of %d sends would, at most half may: %s", t.Void, t.Near, t.Sends, remedy)
	}
	return nil
}

// After returns how many questions failed later than d after the first failure.
func (t Tally) After(d time.Duration) (n int) {
	for _, q := range t.Failed {
		if q.Due.Sub(t.Failed[0].Due) >= d {
			n++
		}
	}
	return n
}

func (t Tally) String() string {
	var parts []string
	for o, n := range t.Count {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Outcome(o)))
		}
	}
	if n := len(t.Failed); n > 0 {
		parts = append(parts, "failures over "+t.Failed[n-1].Due.Sub(t.Failed[0].Due).Round(time.Millisecond).String())
	}
	if t.Late > 0 {
		parts = append(parts, fmt.Sprintf("%d late, %d void", t.Late, t.Void))
	}
	return strings.Join(parts, ", ")
}

// List returns the first failures, a line each, with the time from a moment until they were due.
func (t Tally) List(since time.Time) string {
	var b strings.Builder
	for _, q := range t.Failed[:min(len(t.Failed), maxListed)] {
		fmt.Fprintf(&b, "\n%8s  %s: %s", q.Due.Sub(since).Round(time.Millisecond), q.Way, q.Outcome)
		if q.Err != nil {
			fmt.Fprintf(&b, ": %v", q.Err)
		}
	}
	return b.String()
}
