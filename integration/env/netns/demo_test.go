package netns

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// sketch is a demonstration that is interrupted, fails to show something, or to take it away.
type sketch struct {
	interrupted bool
	shown, left error
	closed      int
}

func (s *sketch) Show(ctx context.Context, _ io.Writer) error {
	if !s.interrupted {
		return s.shown
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		return err
	}
	<-ctx.Done()
	return errors.Join(ctx.Err(), s.shown)
}

func (s *sketch) Close() error {
	s.closed++
	return s.left
}

// The last words are true, and the code is that of an interrupted program only if it was
// interrupted.
func TestRunDemo(t *testing.T) {
	const gone = "everything that was made is gone again"
	broken, busy := errors.New("broken"), errors.New("busy")
	for _, test := range []struct {
		name string
		demo sketch
		code int
		says []string
	}{
		{"done", sketch{}, 0, nil},
		{"broken", sketch{shown: broken}, 1, []string{"sketch: broken"}},
		{"not taken away", sketch{left: busy}, 1, []string{"may be left: busy"}},
		{"broken and not taken away", sketch{shown: broken, left: busy}, 1, []string{"sketch: broken", "may be left: busy"}},
		{"interrupted", sketch{interrupted: true}, 130, []string{gone}},
		{"interrupted, not taken away", sketch{interrupted: true, left: busy}, 130, []string{"may be left: busy"}},
		{"interrupted, not taken away as it was interrupted", sketch{interrupted: true, left: context.Canceled}, 130, []string{"may be left: context canceled"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var diag strings.Builder
			if code := RunDemo("sketch", &test.demo, io.Discard, &diag); code != test.code || test.demo.closed != 1 {
				t.Errorf("code %d after %d times of taking it away, want %d", code, test.demo.closed, test.code)
			}
			for _, want := range test.says {
				if !strings.Contains(diag.String(), want) {
					t.Errorf("it does not say %q, but %q", want, &diag)
				}
			}
			if len(test.says) == 0 && diag.String() != "" || test.demo.left != nil && strings.Contains(diag.String(), gone) {
				t.Errorf("it says %q", &diag)
			}
		})
	}
}
