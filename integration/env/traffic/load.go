package traffic

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Asker puts questions on one way, from one goroutine.
type Asker interface {
	// Ask begins a question and does not wait for its answer. It calls done at most once, before
	// Close returns; without a call the question is lost.
	Ask(done func(Outcome, error)) error
	// Close waits for the answers that are under way.
	Close()
}

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

// Start starts a Load of questions per second. It calls open for each way, in the namespace of the
// way; Ask is called there too.
func Start(rate int, open func(Way) (Asker, error), ways ...Way) *Load {
	ctx, end := context.WithCancel(context.Background())
	l := &Load{pacer: NewPacer(rate), ways: ways, end: end}
	for i, w := range ways {
		l.running.Go(func() {
			err := w.From.Do(func() error { return l.ask(ctx, open, i) })
			l.mu.Lock()
			defer l.mu.Unlock()
			l.err = errors.Join(l.err, err)
		})
	}
	return l
}

// ask puts every question of one way until ctx ends.
func (l *Load) ask(ctx context.Context, open func(Way) (Asker, error), way int) error {
	asker, err := open(l.ways[way])
	if err != nil {
		return err
	}
	defer asker.Close()
	for send := way; ; send += len(l.ways) {
		inTime, err := l.pacer.Wait(ctx, send)
		if err != nil {
			return nil // the load ends
		}
		if !inTime {
			continue
		}
		if err := asker.Ask(l.begin(send)); err != nil {
			return err
		}
	}
}

// begin adds a question and returns the function that sets its outcome.
func (l *Load) begin(send int) (done func(Outcome, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.questions)
	l.questions = append(l.questions, Question{Way: l.ways[send%len(l.ways)], Due: l.pacer.Due(send)})
	return func(o Outcome, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.questions[i].Outcome, l.questions[i].Err = o, err
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
