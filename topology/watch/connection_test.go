package watch

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// connecting is a Connection whose Connect fails with each of its errors in turn, and then
// succeeds.
type connecting struct {
	*Connection
	errs  []error
	times []time.Time // of the attempts
	log   strings.Builder
}

func newConnecting(t *testing.T, errs ...error) *connecting {
	t.Helper()
	cluster := startCluster(t).Cluster
	c := &connecting{errs: errs}
	c.Connection = NewConnection(func() (*Cluster, error) {
		c.times = append(c.times, time.Now())
		if n := len(c.times); n <= len(c.errs) {
			return nil, c.errs[n-1]
		}
		return cluster, nil
	}, slog.New(slog.NewTextHandler(&c.log, nil)))
	return c
}

// TestConnectionIsTriedAgain: with pauses that grow, and a line in the log for each reason.
func TestConnectionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing, empty := errors.New("no such file"), errors.New("no cluster in it")
		c := newConnecting(t, missing, missing, missing, missing, missing, missing, missing, empty)
		begin := time.Now()
		if err := c.Try(); !errors.Is(err, missing) {
			t.Errorf("Try: %v", err)
		}
		start(t, c.Run)
		synctest.Wait()
		if lost := c.Lost(); !lost.Since.Equal(begin) || lost.Reason != "no such file" {
			t.Errorf("lost: %+v", lost)
		}
		if _, whole := c.Snapshot(); whole || c.Listed() != (Listed{}) {
			t.Error("there is a Snapshot without a connection")
		}
		time.Sleep(100 * time.Second)
		synctest.Wait()
		if lost := c.Lost(); !lost.Since.Equal(begin) || lost.Reason != "no cluster in it" {
			t.Errorf("lost: %+v", lost)
		}
		<-c.Changed() // there is a connection
		synctest.Wait()
		if _, whole := c.Snapshot(); !whole {
			t.Error("there is no Snapshot, although it is connected")
		}
		if lost := c.Lost(); lost != (Loss{}) {
			t.Errorf("lost: %+v", lost)
		}
		var pauses []time.Duration
		for i, at := range c.times[1:] {
			pauses = append(pauses, at.Sub(c.times[i])/time.Second)
		}
		if got := len(pauses); got != 8 || pauses[0] != 1 || pauses[1] != 2 || pauses[4] != 16 || pauses[5] != 30 || pauses[7] != 30 {
			t.Errorf("pauses in seconds: %d", pauses)
		}
		for text, want := range map[string]int{"no such file": 1, "no cluster in it": 1, "can be read now": 1} {
			if got := strings.Count(c.log.String(), text); got != want {
				t.Errorf("%q is logged %d times, want %d", text, got, want)
			}
		}
	})
}

// TestConnectionAtOnce: what succeeds at the start is not logged, and an end during a pause is one.
func TestConnectionAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnecting(t)
		if err := c.Try(); err != nil {
			t.Fatal(err)
		}
		start(t, c.Run)
		<-c.Changed()
		if len(c.times) != 1 || c.log.String() != "" {
			t.Errorf("%d attempts, log: %s", len(c.times), c.log.String())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newConnecting(t, errors.New("no"), errors.New("no"))
		start(t, c.Run)
		synctest.Wait() // and the test ends
	})
}
