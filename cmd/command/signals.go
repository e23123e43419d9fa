package command

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// endAfter calls end when limit has passed since ctx ended. Call release when there is nothing
// left to end.
func endAfter(ctx context.Context, limit time.Duration, end func()) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(limit):
			end()
		}
	})
	return func() {
		stop()
		close(done)
	}
}

// IgnoreHangup keeps the process alive on SIGHUP until ctx ends, and logs that the signal is
// ignored. Nothing has to be read again: sources are watched, and flags are valid until the next
// start. Otherwise a closed terminal, or a tool that means "read your configuration again", would
// end a daemon.
func IgnoreHangup(ctx context.Context, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				log.Info("SIGHUP is ignored: sources are watched; restart to change flags")
			}
		}
	}()
}
