package main

import (
	"context"
	"errors"
	"log/slog"
)

// firstProblem is a log handler for commands that ask an API server once. Where the daemon logs a
// warning and retries, the command ends with that text as its error.
type firstProblem struct{ giveUp context.CancelCauseFunc }

// Enabled accepts only warnings and errors.
func (p firstProblem) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle makes an error from a record. It prefers the attribute err, because the message is about a
// daemon that retries.
func (p firstProblem) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "err" {
			return true
		}
		text = a.Value.String()
		return false
	})
	p.giveUp(errors.New(text))
	return nil
}

// WithAttrs ignores attributes.
func (p firstProblem) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup ignores groups.
func (p firstProblem) WithGroup(string) slog.Handler { return p }
