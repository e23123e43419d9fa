package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/topology"
	"gridproxy/topology/watch"
)

// diffRun compares once or, with --wait, several times with the same connection. Close it.
type diffRun struct {
	o      options.Options
	std    command.Stdio
	warn   func(string)
	list   *listing       // nil = there are manifests, which are read each time
	kernel *driver.Shadow // nil = before the first comparison
}

// newDiffRun reads the cluster.
func newDiffRun(ctx context.Context, o options.Options, std command.Stdio, warn func(string)) (*diffRun, error) {
	l := &diffRun{o: o, std: std, warn: warn}
	var err error
	if l.o.NodeName, err = nodeName(o.NodeName); err != nil {
		return nil, err
	}
	if len(o.Manifests) > 0 {
		return l, nil
	}
	defer command.Waiting(std.Err, waitingFor(o))()
	l.list, err = openListing(ctx, l.o, false)
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

// compare makes the whole answer, which is empty if the kernel holds what is desired. Only the
// first comparison warns.
func (l *diffRun) compare(ctx context.Context) ([]byte, error) {
	s, err := l.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	view := topology.Resolve(s, l.o.Topology())
	want := rules.Compile(view, apiserver.RulesConfig(l.o))
	for _, w := range append(doubts(s, view), driver.Warnings(want, l.o)...) {
		l.warn(w)
	}
	l.warn = func(string) {}
	if l.kernel == nil {
		log := slog.New(slog.NewTextHandler(l.std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
		if l.kernel, err = driver.NewShadow(ctx, l.o, log); err != nil {
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
		var warnings []string
		s, warnings, err = readSnapshot(ctx, l.o, l.std.In, l.std.Err)
		for _, w := range warnings {
			l.warn(w)
		}
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
