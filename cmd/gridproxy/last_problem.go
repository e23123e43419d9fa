package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// lastProblem is a log handler that keeps the last warning or error, so that a command
// that gave up can say why instead of logging while it waits.
type lastProblem struct {
	mu  sync.Mutex
	err error
}

// Enabled takes warnings and errors only.
func (p *lastProblem) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle keeps a record's message with its attributes.
func (p *lastProblem) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += ": " + a.Value.String()
		return true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.New(text)
	return nil
}

// WithAttrs drops attributes that all records share.
func (p *lastProblem) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup ignores groups.
func (p *lastProblem) WithGroup(string) slog.Handler { return p }

func (p *lastProblem) get() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
