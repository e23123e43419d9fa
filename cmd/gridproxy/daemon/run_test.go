package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
)

// noSource has no Snapshot.
type noSource struct{}

func (noSource) Snapshot() (topology.Snapshot, bool) { return topology.Snapshot{}, false }
func (noSource) Changed() <-chan struct{}            { return nil }

// TestFatalErrorEndsStuckDaemon: an error that ends the daemon does so although one of its parts
// does not end, as a signal does.
func TestFatalErrorEndsStuckDaemon(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	d := &daemon{
		log: log, syncer: syncer.New(syncer.Config{Source: noSource{}, Log: log}),
		reading: make(chan error), // the source does not end with its context
		servers: []server{portServer("metrics", "metrics-bind-address", "192.0.2.1:1", nil, true)},
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- d.run(ctx, cancel) }()
	if err := wait.Receive(t, "the daemon ends", result); err == nil || !strings.Contains(err.Error(), "starting the metrics server: ") {
		t.Errorf("got %v, want the error of the server", err)
	}
}
