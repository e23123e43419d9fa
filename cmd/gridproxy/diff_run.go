package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/topology"
	"gridproxy/topology/watch"
)

// diffRun compares once or, with --wait, several times with the same connection. Close it.
type diffRun struct {
	in     *inputs
	std    command.Stdio
	list   *listing       // nil = there are manifests, which are read each time
	kernel *driver.Shadow // nil = before the first comparison
}

// newDiffRun sets in.NodeName if it is empty and, without manifests, reads the cluster.
func newDiffRun(ctx context.Context, in *inputs, std command.Stdio) (l *diffRun, err error) {
	l = &diffRun{in: in, std: std}
	if in.NodeName, err = nodeName(in.NodeName); err != nil || len(in.Manifests) > 0 {
		return l, err
	}
	defer command.Waiting(std.Err, "reading the cluster")()
	l.list, err = openListing(ctx, in.Options, false)
	return l, err
}

func (l *diffRun) close() {
	if l.list != nil {
		l.list.close()
	}
}

// unreadKernelError means that the kernel could not be read, as while a daemon makes a table.
type unreadKernelError struct{ error }

func (e unreadKernelError) Unwrap() error { return e.error }

// compare returns the whole diff, which is empty if the kernel holds what is desired. The error
// is an unreadKernelError if the kernel cannot be read. Only the first comparison warns.
func (l *diffRun) compare(ctx context.Context) ([]byte, error) {
	s, err := l.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	o := l.in.Options
	view := topology.Resolve(s, o.Topology())
	want := rules.Compile(view, apiserver.RulesConfig(o))
	l.in.warnAll(append(doubts(s, view), driver.Warnings(want, o)...))
	l.in.warn = func(string) {}
	if l.kernel == nil {
		log := slog.New(slog.NewTextHandler(l.std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
		if l.kernel, err = driver.NewShadow(ctx, o, log); err != nil {
			return nil, unreadKernelError{err}
		}
	}
	if _, err := l.kernel.Sync(ctx, want, true); err != nil {
		return nil, unreadKernelError{err}
	}
	var text bytes.Buffer
	for _, d := range l.kernel.Differences() {
		if _, err := d.WriteTo(&text); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// snapshot returns the present state of the cluster, with what this machine knows: its
// addresses, and which API proxies answer.
func (l *diffRun) snapshot(ctx context.Context) (s topology.Snapshot, err error) {
	if l.list != nil {
		s, err = l.list.snapshot()
	} else {
		s, err = l.in.snapshot(ctx, l.std.In)
	}
	if err != nil {
		return s, err
	}
	if s.Host, err = host.Read(); err != nil {
		return s, fmt.Errorf("reading this machine's addresses: %w", err)
	}
	s.APIProxies = watch.ProbeOnce(ctx, s)
	return s, nil
}
