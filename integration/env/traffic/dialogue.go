package traffic

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

// Dialogue is one connection, and where its answers are read. One goroutine at a time may ask.
type Dialogue struct {
	client *Client
	conn   net.Conn
	read   *bufio.Reader
	gone   func() // gives its port back
}

// Over is the dialogue on a connection that the caller opened and closes.
func (c *Client) Over(conn net.Conn) *Dialogue {
	return &Dialogue{client: c, conn: conn, read: bufio.NewReader(conn), gone: func() {}}
}

// Ask asks once more and returns who answers. When ctx ends first, the dialogue has come to its end.
func (d *Dialogue) Ask(ctx context.Context) (pod string, err error) { return d.say(ctx, "") }

// AskLast is Ask, and the server then ends the connection.
func (d *Dialogue) AskLast(ctx context.Context) (pod string, err error) {
	return d.say(ctx, "Connection: close\r\n")
}

func (d *Dialogue) say(ctx context.Context, header string) (pod string, err error) {
	stop := context.AfterFunc(ctx, func() { _ = d.conn.SetDeadline(time.Unix(1, 0)) }) // if it is closed, no call waits
	pod, err = d.exchange(header)
	if stop() {
		return pod, err
	}
	if err == nil {
		err = errors.New("answered too late")
	}
	return "", fmt.Errorf("%w: %w", err, context.Cause(ctx))
}

func (d *Dialogue) exchange(header string) (pod string, err error) {
	if _, err := io.WriteString(d.conn, "GET / HTTP/1.1\r\nHost: echo\r\n"+header+"\r\n"); err != nil {
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
	if pod, err = d.client.Who(string(text)); err == nil {
		d.client.answered.Add(1)
	}
	return pod, err
}

func (d *Dialogue) close() error {
	defer d.gone()
	return reset(d.conn)
}
