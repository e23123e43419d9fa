package traffic

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Client connects to echo servers over HTTP. Its methods are safe for concurrent use, and no two of its
// connections come from the same port, unless that has rested meanwhile.
type Client struct {
	// Who reads from an answer which Pod gave it.
	Who func(text string) (pod string, err error)
	// Deadline is how long one question may take, together with the opening of its connection, whatever
	// becomes of others. 0: Deadline while others are answered, and AloneTimeout while none is.
	Deadline time.Duration

	answered atomic.Int64 // how many questions were
	once     sync.Once
	pool     ports // made by once
}

func (c *Client) ports() ports {
	c.once.Do(func() { c.pool = newPorts(firstPort, lastPort) })
	return c.pool
}

// Ask asks once, on a connection of its own, and returns who answered.
func (c *Client) Ask(w Way) (pod string, err error) {
	pod, _, err = c.askOnce(w)
	return pod, err
}

// askOnce is Ask, and tells how many packets TCP sent again.
func (c *Client) askOnce(w Way) (pod string, resent int, err error) {
	d, pod, err := c.open(w)
	if d != nil {
		var unknown error
		resent, unknown = packetsResent(d.conn)
		err = errors.Join(err, unknown, d.close())
	}
	return pod, resent, err
}

// open opens a connection and asks its first question. With an error the dialogue may be nil.
func (c *Client) open(w Way) (*Dialogue, string, error) {
	ctx, cancel := c.fair()
	defer cancel()
	d, err := c.connect(ctx, w)
	if err != nil {
		return nil, "", err
	}
	pod, err := d.Ask(ctx)
	return d, pod, err
}

func (c *Client) connect(ctx context.Context, w Way) (*Dialogue, error) {
	port, err := c.ports().take(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := w.Dial(ctx, port)
	if err != nil {
		c.ports().give(port, rest)
		return nil, err
	}
	d := c.Over(conn)
	d.gone = func() { c.ports().give(port, rest) }
	return d, nil
}
