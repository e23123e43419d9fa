package iptables

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/netfilter"
	"gridproxy/topology/excerpt"
)

// saver runs one iptables-save and streams what it prints.
type saver struct {
	path    string
	variant netfilter.Variant
	family  netfilter.Family
	limit   time.Duration // 0 = saveTimeout
}

// lines yields the lines of one table, or with only "" those of every table that exists. A named
// table is created by iptables-legacy-save if it does not exist. An error is the last thing
// yielded; it is an UnreadableError if a needed table exists but was not printed.
func (s saver) lines(ctx context.Context, only string, needed ...netfilter.Table) iter.Seq2[netfilter.Line, error] {
	return func(yield func(netfilter.Line, error) bool) {
		var p printed
		for line, err := range s.output(ctx, only) {
			if err != nil {
				yield(netfilter.Line{}, err)
				return
			}
			p.read(line)
			switch line.Kind {
			case netfilter.LineIncompatible:
				continue
			case netfilter.LineDelete, netfilter.LineOther:
				if slices.Contains(needed, line.Table) {
					const format = "reading the output of %s: %.60q is not what it prints in table %s"
					yield(netfilter.Line{}, fmt.Errorf(format, s.path, line.Text, line.Table))
					return
				}
			}
			if !yield(line, nil) {
				return
			}
		}
		if err := s.check(p, needed); err != nil {
			yield(netfilter.Line{}, err)
		}
	}
}

// output yields what the tool prints. An error is the last thing yielded.
func (s saver) output(ctx context.Context, only string) iter.Seq2[netfilter.Line, error] {
	return func(yield func(netfilter.Line, error) bool) {
		ctx, end := withLimit(ctx, s.path, cmp.Or(s.limit, saveTimeout))
		defer end()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var args []string
		if only != "" {
			args = []string{"-t", only}
		}
		var complaint excerpt.Output
		cmd := host.Command(ctx, s.path, args...)
		cmd.Stderr = &complaint
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			yield(netfilter.Line{}, fmt.Errorf("starting %s: %w", s.path, err))
			return
		}
		// A process that left the tool's process group could hold the pipe forever.
		defer context.AfterFunc(ctx, func() { _ = out.Close() })()
		var scanErr error
		stopped := false
		for line, err := range netfilter.Scan(out, s.family) {
			if scanErr = err; err != nil {
				break
			}
			if stopped = !yield(line, nil); stopped {
				break
			}
		}
		late := context.Cause(ctx)
		if scanErr != nil || stopped {
			cancel()
		}
		_, _ = io.Copy(io.Discard, out)
		waitErr := cmd.Wait()
		switch {
		case stopped: // by the caller, so the tool was killed
		case waitErr == nil && scanErr == nil:
			rules.Progress(ctx)
		case late != nil:
			yield(netfilter.Line{}, fmt.Errorf("%s: %w", s.path, late))
		case scanErr != nil:
			yield(netfilter.Line{}, fmt.Errorf("reading the output of %s: %w", s.path, scanErr))
		case waitErr != nil:
			yield(netfilter.Line{}, fmt.Errorf("%s: %w: %s", s.path, waitErr, excerpt.Message(strings.Join(strings.Fields(complaint.String()), " "))))
		}
	}
}
