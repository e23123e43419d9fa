package localdns

import (
	"bufio"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"time"

	"gridproxy/rules/host"
	"gridproxy/topology/dnsfeed"
)

// peer is a DNS server that is connected. Its Server's mutex guards it.
type peer struct {
	state Client
	acked uint64 // the generation that it reported
	last  dnsfeed.Report
	stuck error // why nothing more is sent to it
}

// published notes that the server answers from older names now, of more than large Services.
func (c *peer) published(now time.Time) {
	if c.state.Behind.IsZero() {
		c.state.Behind = now
	}
}

// reported notes a report. latest is the last generation that changed more than large Services,
// and published is when it came.
func (c *peer) reported(r dnsfeed.Report, latest uint64, published, now time.Time) {
	c.state.Reported, c.state.Serving, c.state.Answered = now, r.Serving, c.answered(r, now)
	c.last = r
	switch {
	case r.Generation >= latest:
		c.state.Behind = time.Time{}
	case r.Generation > c.acked:
		c.state.Behind = published // it keeps up with changes that never stop
	}
	c.acked = r.Generation
}

// answered returns when the counts of each address in a report have last grown. Those of the first
// report say nothing about when that was.
func (c *peer) answered(r dnsfeed.Report, now time.Time) []Answers {
	all := make([]Answers, min(len(r.Serving), len(r.Answered)))
	for i := range all {
		before := slices.Index(c.last.Serving, r.Serving[i])
		if before < 0 || before >= len(c.last.Answered) {
			continue
		}
		all[i] = c.state.Answered[before]
		if r.Answered[i].UDP > c.last.Answered[before].UDP {
			all[i].UDP = now
		}
		if r.Answered[i].TCP > c.last.Answered[before].TCP {
			all[i].TCP = now
		}
	}
	return all
}

// tell sends everything, and every change after it, until sending fails or ctx ends, which is
// no error. Large Services wait for their turn.
func (s *Server) tell(ctx context.Context, conn net.Conn) error {
	out := bufio.NewWriterSize(conn, 64<<10)
	w := dnsfeed.NewWriter(out)
	send := func(write func() error) error {
		return errors.Join(conn.SetWriteDeadline(time.Now().Add(writeTimeout)), write(), out.Flush())
	}
	if err := send(func() error {
		return w.Hello(dnsfeed.Hello{Node: s.config.Node, Domain: s.config.Domain, Service: s.config.Service.String()})
	}); err != nil {
		return err
	}
	runtime.LockOSThread() // for ThreadTime
	defer runtime.UnlockOSThread()
	var backlog dnsfeed.Backlog
	for {
		view, generation, next := s.latest()
		var rested <-chan time.Time // when a large Service may be sent
		if generation > 0 {
			u, again := backlog.Next(view, time.Now())
			if !u.Empty() {
				u.Generation = generation
				before := host.ThreadTime()
				if err := send(func() error { return w.Update(u) }); err != nil {
					return err
				}
				backlog.Took(host.ThreadTime()-before, time.Now())
				continue
			}
			if !again.IsZero() {
				rested = time.After(time.Until(again))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		case <-rested:
		}
	}
}

// hear reads reports until the connection ends or must end, and always returns an error. There
// is no limit on the time between two: a DNS server that hangs must count for as long as its
// process lives. The kernel closes the connection of one that ends.
func (s *Server) hear(conn net.Conn, c *peer) error {
	r := dnsfeed.NewReader(bufio.NewReader(conn))
	for {
		report, err := r.Report()
		if err != nil {
			return err
		}
		if err := s.heard(c, report); err != nil {
			return err
		}
	}
}

// heard notes a report. If sending to the server has failed, it returns that error instead: a
// server that did not take its updates for a while has to connect again.
func (s *Server) heard(c *peer, r dnsfeed.Report) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stuck != nil {
		return c.stuck
	}
	if !slices.Equal(c.state.Serving, r.Serving) {
		s.wake()
	}
	c.reported(r, s.due, s.published, time.Now())
	return nil
}
