package play

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

// Play shows something until it is done, or until ctx ends, and takes it away.
type Play func(ctx context.Context, out io.Writer) error

// Run is the main of a demonstration; it returns the exit code. Ctrl-C and SIGTERM end its context.
func Run(name string, play Play, out, diag io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := play(ctx, out)
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintf(diag, "\n%s: interrupted: %v\n", name, err)
		return 130
	case ctx.Err() != nil:
		fmt.Fprintln(diag, "\ninterrupted; everything that was made is gone again")
		return 130
	case err != nil:
		fmt.Fprintf(diag, "\n%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Interrupt ends a play in the middle, as Ctrl-C does, as soon as it prints a text; the play must have a TMPDIR of
// its own. What it prints until then is lost. No file, process, control group, mount or link may be left.
func Interrupt(t *testing.T, play Play, text string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := Footprint(t)
	if err := play(ctx, &trigger{text: text, fire: cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, the demo ends with %v", err)
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
