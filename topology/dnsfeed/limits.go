package dnsfeed

import "gridproxy/topology/dnsview"

// Limits of what is read and written.
const (
	MaxFrame  = 1 << 20   // bytes of one frame, without its length
	MaxUpdate = 256 << 20 // bytes of all frames of one update
)

// Limits of one frame, in estimated bytes or in names. The longest names that an API server takes
// fit many times.
const (
	partMax       = MaxFrame / 64 * 63
	removedMax    = 1000
	namespacesMax = 4000
	laterMax      = 1000 // names that a reader keeps; of further ones it has none until they follow

	// portsMax is for ports of a Service and for those of an endpoint: both fit into one frame, and
	// either leaves half of it for endpoints. If all lists of a Service have no more ports together,
	// a frame has hundreds of endpoints.
	portsMax = dnsview.MaxPorts
	// perItem is more than the numbers of an endpoint, an alias or a port take.
	perItem = 64
)

// A Service with more pairs of an endpoint and a port than largePairs is large. After it was sent,
// largeDelay times the processor time of that passes until a large one is sent again.
const (
	largePairs = 20_000
	largeDelay = 20
)
