package traffic

import (
	"context"
	"fmt"
	"time"
)

// The ports that connections come from: above those of daemons, below NodePorts and the ones that the
// kernel chooses.
const firstPort, lastPort = 11_000, 29_999

// rest is how long a port is left alone after its connection ended by a reset: IPVS and conntrack
// remember such a connection for ten seconds.
const rest = 20 * time.Second

// ports gives each connection of a Client a port of its own, whatever it goes to. No two that are open, or
// not yet forgotten, have the same: IPVS tells the answers of a real server apart by the client's address
// and port alone, so a new connection to another virtual server would take those of an open one
// (TestSamePortTwoServers in integration/node/drain), and an open one would end without any fault
// of gridproxy's.
type ports struct{ free chan int }

func newPorts(first, last int) ports {
	p := ports{free: make(chan int, last-first+1)}
	for port := first; port <= last; port++ {
		p.free <- port
	}
	return p
}

// take waits for the port that has rested longest.
func (p ports) take(ctx context.Context) (int, error) {
	select {
	case port := <-p.free:
		return port, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for one of %d client ports: %w", cap(p.free), context.Cause(ctx))
	}
}

// give puts a port back once it has rested.
func (p ports) give(port int, rest time.Duration) {
	time.AfterFunc(rest, func() { p.free <- port })
}
