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

// Handle makes an error of a record: of its attribute err where it has one, because the
// message is about a daemon that goes on.
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

// WithAttrs drops attributes that all records share.
func (p firstProblem) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup ignores groups.
func (p firstProblem) WithGroup(string) slog.Handler { return p }
