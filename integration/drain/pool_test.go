package drain

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// The ports that connections come from. Below them are those of daemons, above NodePorts and the ones
// that the kernel chooses.
const firstPort, lastPort = 11_000, 29_999

// rest is how long a port is left alone after its connection ended by a reset: IPVS and conntrack
// remember such a connection for ten seconds.
const rest = 20 * time.Second

// portPool gives each connection of a test a client port of its own. No two that are open, or not
// yet forgotten, have the same: IPVS tells the answers of a real server apart by the client's address
// and port alone, so a new connection to another virtual server would take those of an open one
// (TestSamePortTwoServers), and an open one would end without any fault of gridproxy's.
type portPool struct{ free chan int }

func newPortPool(first, last int) portPool {
	p := portPool{free: make(chan int, last-first+1)}
	for port := first; port <= last; port++ {
		p.free <- port
	}
	return p
}

// take waits for the port that has rested longest.
func (p portPool) take(ctx context.Context) (int, error) {
	select {
	case port := <-p.free:
		return port, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting for one of %d client ports: %w", cap(p.free), context.Cause(ctx))
	}
}

// give puts a port back once it has rested.
func (p portPool) give(port int, rest time.Duration) {
	time.AfterFunc(rest, func() { p.free <- port })
}

// connect opens a connection from a port of the pool.
func (w *world) connect(ctx context.Context, r route) (*flow, error) {
	port, err := w.clients.take(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, r, port)
	if err != nil {
		w.clients.give(port, rest)
		return nil, err
	}
	f := w.newFlow(r, conn)
	f.gone = sync.OnceFunc(func() { w.clients.give(port, rest) })
	return f, nil
}

// While a connection is open nothing else gets its port, however many are made meanwhile, nor before
// the port has rested.
func TestPortPool(t *testing.T) {
	const first, last = 1, 3
	p := newPortPool(first, last)
	take := func() int {
		port, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	open := take()
	for range 10 {
		port := take()
		if port == open {
			t.Errorf("port %d was given twice", port)
		}
		p.give(port, 0)
	}
	p.give(open, time.Hour)
	take()
	take()
	ended, end := context.WithCancel(t.Context())
	end()
	if port, err := p.take(ended); err == nil {
		t.Errorf("port %d was given before it had rested", port)
	}
}
