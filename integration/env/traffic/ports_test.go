package traffic

import (
	"context"
	"testing"
	"time"
)

// While a connection is open nothing else gets its port, however many are made meanwhile, nor before
// the port has rested.
func TestPorts(t *testing.T) {
	const first, last = 1, 3
	p := newPorts(first, last)
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
