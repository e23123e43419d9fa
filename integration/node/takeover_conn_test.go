package node

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// connection is an open TCP connection from a Pod through a Service to an echo server.
type connection struct {
	w      *takenNode
	conn   net.Conn
	reader *bufio.Reader
	first  string // what it answered when it was new
}

// connect opens connections to a Service until one of them ends at an endpoint on that node.
func (w *takenNode) connect(service, node string) *connection {
	w.t.Helper()
	for range 200 {
		conn, err := w.Client(here).Dial(w.ctx, "tcp", w.vip(service))
		w.must(err)
		c := &connection{w: w, conn: conn, reader: bufio.NewReader(conn)}
		c.first, err = c.ask()
		w.must(err)
		if strings.HasPrefix(c.first, node+" /") {
			w.t.Cleanup(func() { conn.Close() })
			return c
		}
		conn.Close()
	}
	w.t.Fatalf("200 connections to %s, none of them to %s", service, node)
	return nil
}

// ask asks once more on the same connection.
func (c *connection) ask() (string, error) {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(c.conn, "GET / HTTP/1.1\r\nHost: echo\r\n\r\n"); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// stillThere wants the same answer as when the connection was new.
func (c *connection) stillThere() {
	c.w.t.Helper()
	if again, err := c.ask(); err != nil || again != c.first {
		c.w.t.Errorf("an open connection answered %q before and %q after the take-over: %v", c.first, again, err)
	}
}

// expectClosed asks often enough that an endpoint outside of the unit would have answered.
func (w *takenNode) expectClosed() {
	w.t.Helper()
	for range 30 {
		answer, err := w.Client(here).Fetch(w.ctx, w.vip("closed-live"))
		w.must(err)
		if answer.Node != "bj-3" {
			w.t.Fatalf("a new connection left the unit: %v", answer)
		}
	}
}

// vip is a Service's cluster IP and first port.
func (w *takenNode) vip(service string) netip.AddrPort {
	w.t.Helper()
	svc, err := w.api.CoreV1().Services(corev1.NamespaceDefault).Get(w.ctx, service, metav1.GetOptions{})
	w.must(err)
	addr, err := netip.ParseAddr(svc.Spec.ClusterIP)
	w.must(err)
	return netip.AddrPortFrom(addr, uint16(svc.Spec.Ports[0].Port))
}
