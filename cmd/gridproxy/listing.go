package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
	"gridproxy/topology/watch"
)

// listing is a Cluster that has read everything once, and follows changes until it is closed. The
// first problem ends it.
type listing struct {
	cluster *watch.Cluster
	server  string
	problem func() error
	giveUp  context.CancelCauseFunc
	ended   chan error
}

// openListing returns when everything is read: of Services those with rules, or all, as in
// manifests. The first problem, or no answer within apiServerTimeout, is its error.
func openListing(ctx context.Context, o options.Options, allServices bool) (*listing, error) {
	config, err := apiserver.RestConfig(o, slog.New(slog.DiscardHandler)) // the first problem is the error
	if err != nil {
		return nil, err
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	cluster, err := watch.NewCluster(watch.ClusterConfig{
		Rest: config, Node: o.NodeName, ServiceProxyName: o.ServiceProxyName, DNS: o.Names,
		AllServices: allServices,
		Written:     func() bool { return true }, // part of a cluster is no answer
		Log:         slog.New(firstProblem{giveUp}),
	})
	if err != nil {
		giveUp(nil)
		return nil, err
	}
	late := time.AfterFunc(apiServerTimeout, func() { giveUp(fmt.Errorf("no answer within %s", apiServerTimeout)) })
	defer late.Stop()
	l := &listing{cluster: cluster, server: config.Host, problem: func() error { return context.Cause(ctx) }, giveUp: giveUp, ended: make(chan error, 1)}
	go func() { l.ended <- cluster.Run(ctx) }()
	for {
		if _, whole := cluster.Snapshot(); whole {
			return l, nil
		}
		select {
		case <-cluster.Changed():
		case <-ctx.Done():
			_, err := l.snapshot()
			l.close()
			return nil, err
		}
	}
}

// snapshot returns the last known state of the cluster. A problem of the connection is an error.
func (l *listing) snapshot() (topology.Snapshot, error) {
	if err := l.problem(); err != nil {
		return topology.Snapshot{}, fmt.Errorf("reading Services, EndpointSlices and Nodes from API server %s: %w; check that it answers, and what --kubeconfig, --master or --api-servers say of it", l.server, err)
	}
	s, _ := l.cluster.Snapshot()
	return s, nil
}

func (l *listing) close() {
	l.giveUp(nil)
	<-l.ended //nolint:errcheck // why it ended no longer matters
}

// firstProblem is a log handler for commands that ask an API server once. Where the daemon logs a
// warning and retries, the command ends with that text as its error.
type firstProblem struct{ giveUp context.CancelCauseFunc }

// Enabled accepts only warnings and errors.
func (p firstProblem) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle ends the listing with an error from a record: its attribute err if it has one, because
// the message is about a daemon that retries.
func (p firstProblem) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "err" {
			return true
		}
		text = a.Value.String()
		return false
	})
	p.giveUp(errors.New(text))
	return nil
}

// WithAttrs ignores attributes.
func (p firstProblem) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup ignores groups.
func (p firstProblem) WithGroup(string) slog.Handler { return p }
