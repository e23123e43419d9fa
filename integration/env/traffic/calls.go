package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gridproxy/integration/env/wait"
)

// Attempt is one short connection.
type Attempt struct {
	Way   Way
	Begin time.Time
	Took  time.Duration
	Pod   string // who answered; "" with an Err
	// Resent is how many packets were sent again: a packet was dropped, or not answered in time.
	Resent int
	Err    error
}

// Calls are short connections, one question each, that are made until End. Safe for concurrent use.
type Calls struct {
	client *Client
	ways   []Way
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	number   int               // attempts begun
	under    map[int]time.Time // those under way, by their number: when they began
	attempts []Attempt
}

// atOnce is how many short connections at a rate may be under way together. Each occupies a thread
// while it is being opened.
const atOnce = 1000

// Call makes short connections, so many a second on all ways together, in turn, however long each takes. On a
// machine that is too busy to begin one in time, it is begun as soon as possible.
func (c *Client) Call(rate int, ways ...Way) *Calls {
	calls, ctx := c.newCalls(ways)
	room := make(chan struct{}, atOnce)
	pacer := NewPacer(rate)
	calls.done.Go(func() {
		for i := 0; ; i++ {
			time.Sleep(time.Until(pacer.Due(i)))
			if ctx.Err() != nil {
				return
			}
			room <- struct{}{}
			calls.done.Go(func() {
				calls.attempt(ways[i%len(ways)])
				<-room
			})
		}
	})
	return calls
}

// CallInTurn makes short connections on each way, one after the other. After each a way rests for as long as that
// took, so that on one processor, perhaps emulated, what is tested gets its turn.
func (c *Client) CallInTurn(ways ...Way) *Calls {
	calls, ctx := c.newCalls(ways)
	for _, w := range ways {
		calls.done.Go(func() {
			for ctx.Err() == nil {
				begin := time.Now()
				calls.attempt(w)
				select {
				case <-ctx.Done():
				case <-time.After(time.Since(begin)):
				}
			}
		})
	}
	return calls
}

func (c *Client) newCalls(ways []Way) (*Calls, context.Context) {
	ctx, stop := context.WithCancel(context.Background())
	return &Calls{client: c, ways: slices.Clone(ways), stop: stop, under: map[int]time.Time{}}, ctx
}

func (c *Calls) attempt(w Way) {
	a := Attempt{Way: w, Begin: time.Now()}
	c.mu.Lock()
	number := c.number
	c.number++
	c.under[number] = a.Begin
	c.mu.Unlock()
	a.Pod, a.Resent, a.Err = c.client.askOnce(w)
	a.Took = time.Since(a.Begin)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.under, number)
	c.attempts = append(c.attempts, a)
}

// End lets no more connections begin and waits for those under way.
func (c *Calls) End() {
	c.stop()
	c.done.Wait()
}

// Between are the attempts that were under way at some time from one moment until another.
func (c *Calls) Between(from, until time.Time) []Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Attempt
	for _, a := range c.attempts {
		if a.Begin.Before(until) && !a.Begin.Add(a.Took).Before(from) {
			all = append(all, a)
		}
	}
	return all
}

// AnsweredBy returns an error unless every connection was answered by one of these Pods.
func (c *Calls) AnsweredBy(pods ...string) error {
	all := c.Between(time.Time{}, time.Now())
	wrong := slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool { return a.Err == nil && slices.Contains(pods, a.Pod) })
	if len(all) == 0 {
		return errors.New("no connection was made")
	}
	if len(wrong) > 0 {
		return errors.Join(fmt.Errorf("of %d connections %d were not answered by one of %s; on the first, %s, %q answered",
			len(all), len(wrong), pods, wrong[0].Way, wrong[0].Pod), wrong[0].Err)
	}
	return nil
}

// Settle waits until every connection that was begun before a moment has come to its end.
func (c *Calls) Settle(ctx context.Context, before time.Time) error {
	return wait.For(ctx, func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, begin := range c.under {
			if begin.Before(before) {
				return fmt.Errorf("a connection that began at %s is under way", begin.Format(time.TimeOnly))
			}
		}
		return nil
	})
}

// More waits until each way was asked n times more, from its begin to its end.
func (c *Calls) More(ctx context.Context, n int) error {
	c.mu.Lock()
	begin, ended := time.Now(), len(c.attempts)
	c.mu.Unlock()
	return wait.For(ctx, func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		count := map[Way]int{}
		for _, a := range c.attempts[ended:] {
			if a.Begin.After(begin) {
				count[a.Way]++
			}
		}
		for _, w := range c.ways {
			if count[w] < n {
				return fmt.Errorf("%s: asked %d times, want %d", w, count[w], n)
			}
		}
		return nil
	})
}
