package traffic

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Ask asks a question and returns what became of it. A Load sets its Way and Due.
type Ask func() Question

// Load puts questions at a fixed rate, on its ways in turn, until Stop. It leaves a question out
// that would come late: those of a program that stood still would all come together, and fill the
// socket of a server.
type Load struct {
	pacer   *Pacer
	ways    []Way
	end     context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	questions []Question
	err       error
}

// Start starts a Load of questions per second. It calls next for each question, in the namespace of
// its way; ctx ends after the last answer.
func Start(rate int, next func(ctx context.Context, w Way) (Ask, error), ways ...Way) *Load {
	ctx, end := context.WithCancel(context.Background())
	l := &Load{pacer: NewPacer(rate), ways: ways, end: end}
	for i, w := range ways {
		l.running.Go(func() {
			err := w.From.Do(func() error { return l.ask(ctx, next, i) })
			l.mu.Lock()
			defer l.mu.Unlock()
			l.err = errors.Join(l.err, err)
		})
	}
	return l
}

// ask puts every question of one way until ctx ends, and waits for the answers.
func (l *Load) ask(ctx context.Context, next func(context.Context, Way) (Ask, error), way int) error {
	answered, done := context.WithCancel(context.Background())
	defer done()
	var asking sync.WaitGroup
	defer asking.Wait()
	w := l.ways[way]
	for send := way; ; send += len(l.ways) {
		time.Sleep(time.Until(l.pacer.Due(send)))
		if ctx.Err() != nil {
			return nil // the load ends
		}
		if !l.pacer.Send(send) {
			continue
		}
		ask, err := next(answered, w)
		if err != nil {
			return err
		}
		asking.Go(func() {
			q := ask()
			q.Way, q.Due = w, l.pacer.Due(send)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.questions = append(l.questions, q)
		})
	}
}

// Sends returns how many sends were due until now.
func (l *Load) Sends() int { return l.pacer.Sends() }

// Stop ends the load, waits for the answers that are under way, and counts. It may be called again.
func (l *Load) Stop() (Tally, error) {
	l.end()
	l.running.Wait()
	return l.tally(), l.err
}

// tally counts what became of all questions. A failure near a late send counts as nothing.
func (l *Load) tally() (t Tally) {
	late := l.pacer.Late()
	t.Sends, t.Late = l.pacer.Sends(), len(late)
	for send := range t.Sends {
		if isNear(late, l.pacer.Due(send)) {
			t.Near++
		}
	}
	slices.SortFunc(l.questions, func(a, b Question) int { return a.Due.Compare(b.Due) })
	for _, q := range l.questions {
		if q.Outcome < Wrong && isNear(late, q.Due) {
			t.Void++
			continue
		}
		t = t.With(q)
	}
	return t
}

// nearLate is how close to a late send a failure says nothing: longer than an answer takes that is
// under way when the program stops.
const nearLate = 100 * time.Millisecond

// isNear reports whether one of several times, which are in order, is near t.
func isNear(times []time.Time, t time.Time) bool {
	i, _ := slices.BinarySearchFunc(times, t.Add(-nearLate), time.Time.Compare)
	return i < len(times) && !times[i].After(t.Add(nearLate))
}
