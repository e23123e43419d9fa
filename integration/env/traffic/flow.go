package traffic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gridproxy/integration/env/wait"
)

// Pause lies between two questions of a Flow: many of them share one processor.
const Pause = 200 * time.Millisecond

// Flow is one connection that stays open and asks again and again, until End or until it is lost.
type Flow struct {
	Way Way
	Pod string // who answered first

	dialogue *Dialogue
	end      chan struct{} // closed by End
	once     sync.Once
	done     chan struct{} // closed after the last question

	mu    sync.Mutex
	asked []question
	err   error // why it was lost
}

type question struct {
	begin time.Time
	took  time.Duration
}

// Open opens a Flow.
func (c *Client) Open(w Way) (*Flow, error) {
	d, pod, err := c.open(w)
	if err != nil {
		if d != nil {
			err = errors.Join(err, d.close())
		}
		return nil, fmt.Errorf("opening a connection, %s: %w", w, err)
	}
	f := &Flow{Way: w, Pod: pod, dialogue: d, end: make(chan struct{}), done: make(chan struct{})}
	go f.goOn()
	return f, nil
}

// Hold opens Flows on each way until every one of some Pods has one, and keeps these. With an error
// it keeps none.
func (c *Client) Hold(pods []string, ways ...Way) ([]*Flow, error) {
	var kept []*Flow
	for _, w := range ways {
		flows, err := c.holdOn(w, pods)
		kept = append(kept, flows...)
		if err != nil {
			End(kept)
			return nil, err
		}
	}
	return kept, nil
}

// holdOn has one Flow for each of the Pods, or an error and the Flows so far.
func (c *Client) holdOn(w Way, pods []string) ([]*Flow, error) {
	missing := map[string]bool{}
	for _, p := range pods {
		missing[p] = true
	}
	var kept []*Flow
	for range 100 {
		if len(missing) == 0 {
			return kept, nil
		}
		f, err := c.Open(w)
		if err != nil {
			return kept, err
		}
		if !missing[f.Pod] {
			f.End()
			continue
		}
		delete(missing, f.Pod)
		kept = append(kept, f)
	}
	return kept, fmt.Errorf("%s: of 100 connections none to %s", w, slices.Sorted(maps.Keys(missing)))
}

func (f *Flow) goOn() {
	defer close(f.done)
	tick := time.NewTicker(Pause)
	defer tick.Stop()
	for {
		select {
		case <-f.end:
			return
		case <-tick.C:
		}
		q := question{begin: time.Now()}
		ctx, cancel := f.dialogue.client.fair()
		pod, err := f.dialogue.Ask(ctx)
		cancel()
		if err == nil && pod != f.Pod {
			err = fmt.Errorf("%s answers", pod)
		}
		q.took = time.Since(q.begin)
		f.mu.Lock()
		f.asked = append(f.asked, q)
		f.err = err
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// End ends the connection. It may be called more than once, by one goroutine at a time.
func (f *Flow) End() {
	f.once.Do(func() {
		close(f.end)
		<-f.done
		_ = f.dialogue.close() // one that is closed already has ended
	})
}

// Lost says why the Flow was lost; nil as long as it goes on, and after End.
func (f *Flow) Lost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return nil
	}
	return fmt.Errorf("an open connection, %s, from %s, to %s: question %d: %w", f.Way, f.dialogue.conn.LocalAddr(), f.Pod, len(f.asked), f.err)
}

// between are the questions that were under way from one moment until another, and whether the Flow was
// lost at the last of them.
func (f *Flow) between(from, until time.Time) (asked []question, lost error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, q := range f.asked {
		if q.begin.Before(until) && !q.begin.Add(q.took).Before(from) {
			asked = append(asked, q)
			if i == len(f.asked)-1 {
				lost = f.err
			}
		}
	}
	return asked, lost
}

// Alive waits until every Flow was answered n times more, and returns why those were lost that were.
func Alive(ctx context.Context, n int, flows ...*Flow) error {
	begin := time.Now()
	var errs []error
	for _, f := range flows {
		errs = append(errs, wait.For(ctx, func(context.Context) error {
			asked, _ := f.between(begin, time.Now())
			return wait.Check(len(asked) >= n || f.Lost() != nil, "an open connection, %s, to %s was answered %d times, want %d", f.Way, f.Pod, len(asked), n)
		}), f.Lost())
	}
	return errors.Join(errs...)
}

// End ends Flows.
func End(flows []*Flow) {
	for _, f := range flows {
		f.End()
	}
}
