package stream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Deadline is how long one question may take where a Client does not say otherwise. TCP sends a first
// packet that is lost again after 1, 3, 7 and 15 s.
const Deadline = 20 * time.Second

// Client connects to echo servers over HTTP. Its methods are safe for concurrent use, and no two of its
// connections that are open come from the same port.
type Client struct {
	// Who reads from an answer which Pod gave it.
	Who func(text string) (pod string, err error)
	// Deadline is how long one question may take, together with the opening of its connection; 0:
	// Deadline.
	Deadline time.Duration

	ports ports
}

func (c *Client) deadline() time.Duration {
	if c.Deadline == 0 {
		return Deadline
	}
	return c.Deadline
}

// Ask asks once, on a connection of its own, and returns who answered.
func (c *Client) Ask(w Way) (pod string, err error) {
	pod, _, err = c.once(w)
	return pod, err
}

// once is Ask, and tells how many packets TCP sent again.
func (c *Client) once(w Way) (pod string, resent int, err error) {
	d, pod, err := c.dial(w)
	if d != nil {
		var unknown error
		resent, unknown = packetsResent(d.conn)
		err = errors.Join(err, unknown, d.close())
	}
	return pod, resent, err
}

// dialogue is one connection, and where its answers are read.
type dialogue struct {
	client *Client
	port   int
	conn   net.Conn
	read   *bufio.Reader
}

// dial opens a connection and asks its first question. With an error the dialogue may be nil.
func (c *Client) dial(w Way) (*dialogue, string, error) {
	end := time.Now().Add(c.deadline())
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	port := c.ports.take()
	conn, err := w.dial(ctx, port)
	if err != nil {
		c.ports.give(port)
		return nil, "", err
	}
	d := &dialogue{client: c, port: port, conn: conn, read: bufio.NewReader(conn)}
	pod, err := d.ask(end)
	return d, pod, err
}

// ask asks once more and returns who answers.
func (d *dialogue) ask(end time.Time) (string, error) {
	if err := d.conn.SetDeadline(end); err != nil {
		return "", fmt.Errorf("setting a deadline: %w", err)
	}
	if _, err := io.WriteString(d.conn, "GET / HTTP/1.1\r\nHost: echo\r\n\r\n"); err != nil {
		return "", fmt.Errorf("asking: %w", err)
	}
	answer, err := http.ReadResponse(d.read, nil)
	if err != nil {
		return "", fmt.Errorf("hearing: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("hearing: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the answer is %s: %s", answer.Status, text)
	}
	return d.client.Who(string(text))
}

func (d *dialogue) close() error {
	defer d.client.ports.give(d.port)
	return reset(d.conn)
}
