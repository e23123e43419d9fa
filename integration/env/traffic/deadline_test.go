package traffic

import (
	"testing"
	"testing/synctest"
	"time"
)

// A question is lost after its deadline when others are answered, else after AloneTimeout. A
// deadline that a Client was given holds in any case.
func TestFair(t *testing.T) {
	for _, test := range []struct {
		name     string
		given    time.Duration
		answered int64
		end      time.Duration
	}{
		{"all stands still", 0, answersMeanwhile - 1, AloneTimeout},
		{"all others go on", 0, answersMeanwhile, Deadline},
		{"all stands still, with a deadline", 3 * time.Second, 0, 3 * time.Second},
		{"all others go on, with a deadline", time.Minute, answersMeanwhile, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Client{Deadline: test.given}
				c.answered.Add(answersMeanwhile) // before, which does not count
				begin := time.Now()
				ctx, cancel := c.fair()
				defer cancel()
				c.answered.Add(test.answered)
				<-ctx.Done()
				if took := time.Since(begin); took != test.end {
					t.Errorf("lost after %s, want %s", took, test.end)
				}
			})
		})
	}
}
