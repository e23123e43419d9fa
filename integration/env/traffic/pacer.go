package traffic

import (
	"slices"
	"sync"
	"time"
)

// lateAfter is how much after its due time a send counts as late. The program that sends had no
// processor time then.
const lateAfter = 20 * time.Millisecond

// Pacer says when each send of a load is due, and records those that come late. A program without
// processor time cannot know whether an answer was lost or not read. Methods are safe for
// concurrent use.
type Pacer struct {
	rate  int // sends per second
	began time.Time

	mu    sync.Mutex
	sends int         // whose due time has passed
	late  []time.Time // their due times
}

// NewPacer returns a Pacer of sends per second. Send 0 is due now.
func NewPacer(rate int) *Pacer { return &Pacer{rate: rate, began: time.Now()} }

// Due returns when a send is due.
func (p *Pacer) Due(send int) time.Time {
	return p.began.Add(time.Duration(send) * time.Second / time.Duration(p.rate))
}

// Send records that a send comes now, and reports whether it is in time.
func (p *Pacer) Send(send int) (inTime bool) {
	due := p.Due(send)
	inTime = time.Since(due) <= lateAfter
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends++
	if !inTime {
		p.late = append(p.late, due)
	}
	return inTime
}

// Sends returns how many sends were due until now.
func (p *Pacer) Sends() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sends
}

// Late returns the due times of the sends that came late, in order.
func (p *Pacer) Late() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(slices.Values(p.late), time.Time.Compare)
}
