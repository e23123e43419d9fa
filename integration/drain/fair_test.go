package drain

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// answerDeadline is how long one question may take: longer than a first packet that is lost and sent
// again, which is not a connection lost.
const answerDeadline = 20 * time.Second

// answersMeanwhile is how many other questions must have been answered before one that takes
// answerDeadline counts as lost. An emulated processor on a busy host may stand still for longer; then
// nothing is answered, and no packet was lost.
const answersMeanwhile = 200

// fair is a context for one question. It ends when the question is lost, or after patience.
func (w *world) fair() (context.Context, context.CancelFunc) {
	outer, cancelOuter := context.WithTimeoutCause(context.Background(), patience, fmt.Errorf("not answered within %s", patience))
	ctx, cancel := context.WithCancelCause(outer)
	begin, before := time.Now(), w.answered.Load()
	var look func()
	look = func() {
		if n := w.answered.Load() - before; n >= answersMeanwhile {
			cancel(fmt.Errorf("not answered within %s, while %d others were", time.Since(begin).Round(time.Second), n))
		} else if ctx.Err() == nil {
			time.AfterFunc(time.Second, look)
		}
	}
	timer := time.AfterFunc(answerDeadline, look)
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		cancelOuter()
	}
}

// A question is lost after its deadline when others are answered; when none is, only after patience.
func TestFair(t *testing.T) {
	for _, test := range []struct {
		name     string
		answered int64
		end      time.Duration
	}{
		{"all stands still", answersMeanwhile - 1, patience},
		{"all others go on", answersMeanwhile, answerDeadline},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{}
				w.answered.Add(answersMeanwhile) // before, which does not count
				begin := time.Now()
				ctx, cancel := w.fair()
				defer cancel()
				w.answered.Add(test.answered)
				<-ctx.Done()
				if took := time.Since(begin); took != test.end {
					t.Errorf("lost after %s, want %s", took, test.end)
				}
			})
		})
	}
}
