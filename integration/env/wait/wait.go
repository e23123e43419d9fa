// Package wait is how tests wait: they ask again and again until what a step has made is there.
//
// Timeout is a number of turns. A turn is over when its time has passed and the test's own process
// has run since the turn before, so a machine that stands still takes none.
package wait

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Timeout is how many turns a wait has: ten in a second, five in a virtual machine, whose
// processor is emulated.
type Timeout int

// Usual is enough for one step on a busy machine: three minutes, if it never stands still.
const Usual Timeout = 1800

// maxPause bounds the pause between two asks.
const maxPause = time.Second

// periods returns the shortest pause between two asks, and the length of a turn.
func periods() (pause, turn time.Duration) {
	if os.Getenv("GRIDPROXY_GUEST") != "" {
		return 100 * time.Millisecond, 200 * time.Millisecond
	}
	return 25 * time.Millisecond, 100 * time.Millisecond
}

// TB is what a wait needs of a testing.TB. Programs that wait do not link the package testing.
type TB interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

// Until asks until ask returns nil. It ends the test with the last error if Usual is over before.
// what names the state that is waited for.
func Until(t TB, what string, ask func() error) {
	t.Helper()
	Usual.Until(t, what, ask)
}

// Until asks as the function Until does, with another timeout.
func (p Timeout) Until(t TB, what string, ask func() error) {
	t.Helper()
	if err := p.For(t.Context(), func(context.Context) error { return ask() }); err != nil {
		t.Fatalf("waited in vain: %s: %v", what, err)
	}
}

// Check returns nil if ok is true, else an error with what was seen instead.
func Check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Contains returns nil if a text has all that is wanted, else an error with what it lacks.
func Contains(text string, wanted ...string) error {
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%q is not in:\n%s", want, text)
		}
	}
	return nil
}

// Object is an object of a controller.
type Object interface {
	String() string
	// Generations returns the generation of the spec, and the one that the status is about.
	Generations() (spec, observed int64, err error)
	// Writing returns how many writes of the controller are under way.
	Writing() int
}

// Written waits until the status of the object is about the generation that the step has made, and
// no write of the controller is under way: what a step made it write is then written and counted.
func Written(t TB, o Object) {
	t.Helper()
	Until(t, "the status of "+o.String()+" is about its spec, and nothing is being written", func() error {
		spec, observed, err := o.Generations()
		if err != nil {
			return err
		}
		if writing := o.Writing(); observed != spec || writing > 0 {
			return fmt.Errorf("generation %d, observed %d, %d writes are under way", spec, observed, writing)
		}
		return nil
	})
}

// For asks as the function For does, and gives up when the timeout is over.
func (p Timeout) For(ctx context.Context, ask func(context.Context) error) error {
	return p.Do(ctx, func(ctx context.Context) error { return For(ctx, ask) })
}

// Do runs a step once, with a context that ends when the timeout is over. Unlike Context it leaves
// no timer behind.
func (p Timeout) Do(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	return step(ctx)
}

// Context returns a context that ends with the test, or when the timeout is over. It costs a timer
// until then: what is called again and again uses Do.
func (p Timeout) Context(t TB) context.Context {
	ctx, _ := p.limit(t.Context())
	return ctx
}

// limit returns a context that ends when the timeout is over.
func (p Timeout) limit(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	_, turn := periods()
	tick := time.NewTicker(turn) // drops what the process could not take
	go func() {
		defer tick.Stop()
		p.spend(ctx, tick.C, cancel)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// spend ends ctx after p ticks.
func (p Timeout) spend(ctx context.Context, ticks <-chan time.Time, end context.CancelCauseFunc) {
	for range p {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
	end(fmt.Errorf("not so after %d turns", p))
}

// For asks until ask returns nil. It returns the last error of ask when ctx ends before, and the
// error of Stop at once. Between two asks it pauses three times as long as the last one took, so
// that asking takes no more than a quarter of a processor.
func For(ctx context.Context, ask func(context.Context) error) error {
	shortest, _ := periods()
	var last error
	for {
		begin := time.Now()
		err := ask(ctx)
		if err == nil {
			return nil
		}
		var final stop
		if errors.As(err, &final) {
			return final.error
		}
		// An answer that ctx itself cut short says less than the one before it.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: last seen: %w", context.Cause(ctx), last)
		case <-time.After(min(max(shortest, 3*time.Since(begin)), maxPause)):
		}
	}
}

// stop is an error after which asking again is useless.
type stop struct{ error }

// Stop returns an error for ask to return when asking again is useless, as of a process that has
// ended.
func Stop(err error) error { return stop{err} }

// Receive returns what comes from a channel next, or the zero value when it is closed. It ends the
// test if Usual is over before. what names what is waited for.
func Receive[T any](t TB, what string, from <-chan T) (v T) {
	t.Helper()
	ctx, cancel := Usual.limit(t.Context())
	defer cancel()
	select {
	case v = <-from:
	case <-ctx.Done():
		t.Fatalf("waited in vain: %s: %v", what, context.Cause(ctx))
	}
	return v
}
