package watch

import (
	"context"

	"gridproxy/topology"
)

// Source keeps a Snapshot current.
type Source interface {
	// Run watches until ctx ends. It returns early only if it cannot continue. An unavailable API
	// server is not such a case.
	Run(ctx context.Context) error

	// Snapshot returns the state of the cluster now. It is false until Services,
	// EndpointSlices and the Nodes that count have all been read once. LastKeys and Host are left to
	// the caller.
	Snapshot() (topology.Snapshot, bool)

	// Changed receives after something in the Snapshot changed; many changes may be one
	// receive.
	Changed() <-chan struct{}
}
