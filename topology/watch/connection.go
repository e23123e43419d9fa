package watch

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"
)

// The pauses between attempts to connect: the first one, doubled after each, up to the longest.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Connection is the Source of a Cluster that cannot always be made at the start, because a file
// that it needs is missing. Until it can be, there is no Snapshot, and the API server counts as
// lost.
type Connection struct {
	connect func() (*Cluster, error)
	log     *slog.Logger // logs each reason once, and the success after it
	changed pulse
	cluster atomic.Pointer[Cluster] // nil = not made yet
	loss    atomic.Pointer[Loss]    // of the last attempt; nil = there was none
}

// NewConnection makes the Source, with Connect and Log of a Config. Nothing is attempted before Try
// or Run.
func NewConnection(connect func() (*Cluster, error), log *slog.Logger) *Connection {
	return &Connection{connect: connect, log: cmp.Or(log, slog.New(slog.DiscardHandler)), changed: newPulse()}
}

// Try makes the Cluster now. After an error Run tries again. It must not be called during Run.
func (c *Connection) Try() error {
	cluster, err := c.connect()
	if err != nil {
		loss := Loss{Since: time.Now(), Reason: excerpt.Message(err.Error())}
		if before := c.loss.Load(); before != nil {
			loss.Since = before.Since
		}
		c.loss.Store(&loss)
		return err
	}
	c.cluster.Store(cluster)
	return nil
}

// Run connects, with pauses between failed attempts, and watches until ctx ends; it then returns
// nil.
func (c *Connection) Run(ctx context.Context) error {
	failed := ""
	for pause := firstPause; c.cluster.Load() == nil; pause = min(2*pause, longestPause) {
		if now := c.Lost().Reason; now != failed {
			c.log.Error("the API server cannot be asked: a file of the connection is missing or wrong; the connection is tried again until it is there", "err", now)
			failed = now
		}
		if failed != "" && !sleep(ctx, pause) {
			return nil
		}
		if c.Try() == nil && failed != "" {
			c.changed.send() // what depends on the connection itself
			c.log.Info("the files of the connection to the API server can be read now")
		}
	}
	return forward(ctx, c.cluster.Load(), c.changed.send)
}

// sleep pauses. It returns false if ctx ended first.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Snapshot returns that of the Cluster; false = the Cluster, or its Snapshot, is not there yet.
func (c *Connection) Snapshot() (topology.Snapshot, bool) {
	if cluster := c.cluster.Load(); cluster != nil {
		return cluster.Snapshot()
	}
	return topology.Snapshot{}, false
}

// Changed receives after a change in the Cluster, and when it has been made late.
func (c *Connection) Changed() <-chan struct{} { return c.changed }

// Listed returns that of the Cluster, or the zero value until there is one.
func (c *Connection) Listed() Listed {
	if cluster := c.cluster.Load(); cluster != nil {
		return cluster.Listed()
	}
	return Listed{}
}

// NodeWatches counts those of the Cluster, if there is one. Safe for concurrent use.
func (c *Connection) NodeWatches() (units, all int) {
	if cluster := c.cluster.Load(); cluster != nil {
		return cluster.NodeWatches()
	}
	return 0, 0
}

// Lost returns since when, and why, there is no connection or no answer; zero = there is. Safe
// for concurrent use.
func (c *Connection) Lost() Loss {
	if cluster := c.cluster.Load(); cluster != nil {
		return cluster.Lost()
	}
	now, _ := c.Losses()
	return now
}

// Losses returns those of the Cluster, or that it cannot be made. Safe for concurrent use.
func (c *Connection) Losses() (now Loss, last PastLoss) {
	if cluster := c.cluster.Load(); cluster != nil {
		return cluster.Losses()
	}
	if loss := c.loss.Load(); loss != nil {
		return *loss, PastLoss{}
	}
	return Loss{}, PastLoss{}
}

var _ apiServer = (*Connection)(nil)
