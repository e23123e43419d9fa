package command

import (
	"io"
	"log/slog"
)

// NewLog makes a daemon's log in format "text" or "json". Verbosity v shows slog levels down
// to -v, which is where logr puts its V(v): 4 is slog's debug level.
func NewLog(w io.Writer, format string, verbosity int) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
