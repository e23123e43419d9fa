package command

import (
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/integration/env/wait"
)

// TestEndAfter: a process that does not end after its signal is ended, and one that does is not.
func TestEndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		begin, ended := time.Now(), make(chan time.Duration, 1)
		defer endAfter(ctx, 5*time.Second, func() { ended <- time.Since(begin) })()
		time.Sleep(time.Hour)
		cancel()
		if at := <-ended; at != time.Hour+5*time.Second {
			t.Errorf("ended after %s, want 5s after the signal", at)
		}

		ctx, cancel = context.WithCancel(t.Context())
		release := endAfter(ctx, 5*time.Second, func() { t.Error("a process that ends in time was ended") })
		cancel()
		time.Sleep(time.Second)
		release()
		time.Sleep(time.Hour)
	})
}

// TestIgnoreHangup: this process survives SIGHUP, and logs it.
func TestIgnoreHangup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	logged := make(lines, 1)
	IgnoreHangup(ctx, slog.New(slog.NewTextHandler(logged, nil)))
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if line := wait.Receive(t, "SIGHUP is logged", logged); !strings.Contains(line, "SIGHUP is ignored") {
		t.Errorf("the log says %q", line)
	}
}

// lines is a log that one reader follows.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
