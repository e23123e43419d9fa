package services

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestOtherEnd: of the connections that a server is offered it is the client's, and not one that was given up before;
// and when that does not come, nothing is waited for beyond the deadline.
func TestOtherEnd(t *testing.T) {
	server, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var conns []net.Conn
	for range 2 {
		conn, err := net.Dial("tcp4", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	conns[0].Close()
	far, err := otherEnd(server, conns[1].LocalAddr(), time.Now().Add(answerDeadline))
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := pingPong(conns[1], far); err != nil {
		t.Errorf("it is not the other end: %v", err)
	}
	if _, err := otherEnd(server, conns[1].LocalAddr(), time.Now().Add(-time.Second)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("where there is none: %v", err)
	}
}
