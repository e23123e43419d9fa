package command

import (
	"fmt"
	"io"
	"time"
)

// Waiting writes to w, standard error, what a command waits for, once progressDelay has passed.
// On a terminal the line shows the time, and done erases it; elsewhere it is written once. Call
// done, once, before anything else is printed.
func Waiting(w io.Writer, what string) (done func()) {
	ticker := time.NewTicker(progressPeriod)
	p := &progress{what: what, erasable: obeysEscapes(w)}
	follow := p.follow(w, time.Now(), ticker.C)
	return func() {
		ticker.Stop()
		follow()
	}
}

type progress struct {
	what     string
	erasable bool // the terminal can erase a line
	shown    bool
}

// follow begins to write to w at each tick. done ends that, waits for it, and erases the line.
func (p *progress) follow(w io.Writer, begun time.Time, ticks <-chan time.Time) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case now := <-ticks:
				_, _ = io.WriteString(w, p.after(now.Sub(begun))) // the answer matters, not this
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		_, _ = io.WriteString(w, p.end())
	}
}

// after returns what is written once a time has passed; "" = nothing.
func (p *progress) after(passed time.Duration) string {
	if passed < progressDelay || p.shown && !p.erasable {
		return ""
	}
	p.shown = true
	line := fmt.Sprintf("%s: %d s", p.what, int(passed.Seconds()))
	if p.erasable {
		return "\r" + line + "\x1b[K"
	}
	return line + "\n"
}

// end returns what is written when the wait is over; "" = nothing.
func (p *progress) end() string {
	if p.shown && p.erasable {
		return "\r\x1b[K"
	}
	return ""
}
