package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// Demo is a demonstration.
type Demo interface {
	// Show shows it until it is done, or until ctx ends.
	Show(ctx context.Context, out io.Writer) error
	// Close takes away all that was made. It is called once, after Show, whatever became of that.
	Close() error
}

// RunDemo is the main of a demonstration; it returns the exit code. Ctrl-C and SIGTERM end the
// context of Show.
func RunDemo(name string, demo Demo, out, diag io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shown, left := demo.Show(ctx, out), demo.Close()
	interrupted := ctx.Err() != nil
	if shown != nil && !(interrupted && errors.Is(shown, context.Canceled)) {
		fmt.Fprintf(diag, "\n%s: %v\n", name, shown)
	}
	if left != nil {
		fmt.Fprintf(diag, "\n%s: something that was made may be left: %v\n", name, left)
	}
	switch {
	case interrupted && left == nil:
		fmt.Fprintln(diag, "\ninterrupted; everything that was made is gone again")
		return 130
	case interrupted:
		return 130
	case shown != nil || left != nil:
		return 1
	}
	return 0
}

// InterruptDemo ends a demonstration in the middle, as Ctrl-C does, as soon as it prints a text; it
// must have a TMPDIR of its own. What it prints until then is lost. No file, process, control
// group, mount or link may be left.
func InterruptDemo(t *testing.T, demo Demo, text string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := Footprint(t)
	if err := demo.Show(ctx, &trigger{text: text, fire: cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, the demo ends with %v", err)
	}
	if err := demo.Close(); err != nil {
		t.Errorf("interrupted, the demo cannot take everything away: %v", err)
	}
	if after := Footprint(t); after != before {
		t.Errorf("interrupted, the demo leaves\n%s\nbefore it there was\n%s", after, before)
	}
	NothingLeft(t)
}

// NothingLeft fails the test if there is anything in the test's own TMPDIR.
func NothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Errorf("looking what is left: %v", err)
	}
	for _, file := range left {
		t.Errorf("%s is left", file.Name())
	}
}

// trigger fires once a text is written.
type trigger struct {
	text string
	fire func()
}

func (t *trigger) Write(b []byte) (int, error) {
	if strings.Contains(string(b), t.text) {
		t.fire()
	}
	return len(b), nil
}
