package main

import (
	"context"
	"errors"
	"log/slog"
)

// firstProblem is a log handler for a command that wants one answer of an API server: where
// the daemon would log a warning and go on trying, the command gives up and says why.
type firstProblem struct{ giveUp context.CancelCauseFunc }

// Enabled takes warnings and errors only.
func (p firstProblem) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle makes an error of a record's message and attributes.
func (p firstProblem) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += "; " + a.Key + ": " + a.Value.String()
		return true
	})
	p.giveUp(errors.New(text))
	return nil
}

// WithAttrs drops attributes that all records share.
func (p firstProblem) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup ignores groups.
func (p firstProblem) WithGroup(string) slog.Handler { return p }
