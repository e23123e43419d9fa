package iptables

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"strings"
	"time"
)

// saver runs one iptables-save and streams what it prints.
type saver struct {
	path   string
	family Family
}

// inTime is ctx for reading rules, with a limit: see readLimit. Its Cause says that it was exceeded.
func inTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("reading the rules took more than %s; probably something else keeps changing them: stop it, or try again", limit))
}

// lines yields the lines of one table as the kernel has it now, or with table "" those of
// every table there is. iptables-legacy-save creates the one table it is asked for, but
// with "" only reads those that exist. An error is the last thing yielded.
func (s saver) lines(ctx context.Context, table string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var args []string
		if table != "" {
			args = []string{"-t", table}
		}
		var complaint bytes.Buffer
		cmd := exec.CommandContext(ctx, s.path, args...)
		cmd.Stderr = &complaint
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			yield(Line{}, fmt.Errorf("starting %s: %w", s.path, err))
			return
		}
		var scanErr error
		for line, err := range Scan(out, s.family) {
			if err != nil {
				scanErr = err
				break
			}
			if !yield(line, nil) {
				cancel()
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait() // killed, because nobody wants the rest
				return
			}
		}
		if scanErr != nil {
			cancel()
		}
		_, _ = io.Copy(io.Discard, out)
		waitErr := cmd.Wait()
		switch {
		case scanErr != nil:
			yield(Line{}, fmt.Errorf("reading the output of %s: %w", s.path, scanErr))
		case waitErr != nil:
			yield(Line{}, fmt.Errorf("%s: %w: %s", s.path, waitErr, strings.Join(strings.Fields(complaint.String()), " ")))
		}
	}
}
