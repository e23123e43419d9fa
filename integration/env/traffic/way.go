package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"gridproxy/integration/env/netns"

	"golang.org/x/sys/unix"
)

// Way is a way to a Service: from where, to which address.
type Way struct {
	From *netns.Namespace
	To   netip.AddrPort
	Name string // what To is, for people; may be ""
}

// String is the way as an account shows it.
func (w Way) String() string {
	if w.Name == "" {
		return fmt.Sprintf("%s to %s", w.From.Name, w.To)
	}
	return fmt.Sprintf("%s to %s (%s)", w.From.Name, w.To, w.Name)
}

// Dial connects from a port.
func (w Way) Dial(ctx context.Context, port int) (conn net.Conn, err error) {
	err = w.From.Do(func() error {
		d := net.Dialer{FallbackDelay: -1, LocalAddr: &net.TCPAddr{Port: port}, Control: reuse}
		conn, err = d.DialContext(ctx, "tcp", w.To.String())
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("from port %d: %w", port, err)
	}
	return conn, nil
}

// reuse lets a port be taken that an ended connection still holds.
func reuse(_, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(outer, err)
}

// reset ends a connection by a reset: the kernel then forgets it in ten seconds, while one that ends in
// good order counts as a connection for two minutes more.
func reset(conn net.Conn) error {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return fmt.Errorf("ending a connection by a reset: %w", err)
		}
	}
	return conn.Close()
}

// packetsResent is how many packets TCP has sent again from this end, the first one of the connection too.
func packetsResent(conn net.Conn) (int, error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("asking what was sent again: %w", err)
	}
	var info *unix.TCPInfo
	outer := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err := errors.Join(outer, err); err != nil {
		return 0, fmt.Errorf("asking what was sent again: %w", err)
	}
	return int(info.Total_retrans), nil
}
