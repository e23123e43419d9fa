package watch

import (
	"context"

	"gridproxy/topology"
)

// Source keeps a Snapshot current.
type Source interface {
	// Run watches until ctx ends. It returns early only where going on is pointless;
	// an API server that is away is not such a case.
	Run(ctx context.Context) error

	// Snapshot is the state of the cluster now. It is false until Services,
	// EndpointSlices and Nodes have all been read once. LastKeys and Host are left to
	// the caller.
	Snapshot() (topology.Snapshot, bool)

	// Changed receives after something in the Snapshot changed; many changes may be one
	// receive.
	Changed() <-chan struct{}
}
