package rules

import (
	"context"
	"errors"
)

// ErrInterrupted is the cause of a Reading that ended before it was complete.
var ErrInterrupted = errors.New("reading the kernel back was interrupted, because a change is to be written first")

type readingKey struct{}

// WithReading returns a context for a Sync that verifies. The Sync may read back until reading ends
// what it could trust without reading, because it wrote it last. What it must read, because it does
// not know what the kernel holds, it reads in any case.
func WithReading(ctx, reading context.Context) context.Context {
	return context.WithValue(ctx, readingKey{}, reading)
}

// Reading returns the context in which a Backend reads back what it wrote last. It ends with
// ctx, and with cause ErrInterrupted when the reading of WithReading ends. A reading that ends
// early must leave the Backend as if it had never begun; Sync then reports Changes.Interrupted,
// and no error. Call the func at the end.
func Reading(ctx context.Context) (context.Context, context.CancelFunc) {
	reading, end := context.WithCancelCause(ctx)
	until, limited := ctx.Value(readingKey{}).(context.Context)
	if !limited {
		return reading, func() { end(nil) }
	}
	interrupt := func() { end(ErrInterrupted) }
	if until.Err() != nil {
		interrupt()
	}
	stop := context.AfterFunc(until, interrupt)
	return reading, func() { stop(); end(nil) }
}

// Interrupted reports whether a Reading ended because of WithReading, and not with its Sync.
func Interrupted(reading context.Context) bool {
	return errors.Is(context.Cause(reading), ErrInterrupted)
}

type progressKey struct{}

// WithProgress returns a context by which a Backend reports steps: report is called by
// Progress. It must be safe for concurrent use and must not block.
func WithProgress(ctx context.Context, report func()) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports that one more step of a Sync has ended and was not killed: a program, even if it
// failed, or a message that the kernel accepted. This distinguishes a long Sync that makes progress
// from one that hangs. Without WithProgress it does nothing.
func Progress(ctx context.Context) {
	if report, ok := ctx.Value(progressKey{}).(func()); ok {
		report()
	}
}
