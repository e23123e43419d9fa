package watch

import (
	"context"
	"sync"

	"gridproxy/topology"
)

// Fork is a Source that two may follow: one as any Source, and one with Second. Both may ask for
// the Snapshot, at the same time.
type Fork struct {
	source        Source
	first, second pulse

	mu sync.Mutex // one Snapshot is put together at a time
}

// NewFork makes the Source.
func NewFork(s Source) *Fork { return &Fork{source: s, first: newPulse(), second: newPulse()} }

// Run runs the source.
func (f *Fork) Run(ctx context.Context) error {
	return forward(ctx, f.source, func() { f.first.send(); f.second.send() })
}

// Snapshot returns that of the source.
func (f *Fork) Snapshot() (topology.Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.source.Snapshot()
}

// Changed receives after something in the Snapshot changed.
func (f *Fork) Changed() <-chan struct{} { return f.first }

// Second receives as Changed does, for the other follower.
func (f *Fork) Second() <-chan struct{} { return f.second }

var _ Source = (*Fork)(nil)
