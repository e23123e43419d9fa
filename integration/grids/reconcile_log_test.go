package grids

import (
	"log/slog"
	"sync"
	"testing"
)

// logTo shows what the controllers log with the test, while that runs.
func logTo(t *testing.T) slog.Handler {
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})
}

type testWriter struct {
	mu    sync.Mutex
	t     *testing.T
	ended bool
}

// Write takes one line.
func (w *testWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.t.Logf("%s", line)
	}
	return len(line), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}
