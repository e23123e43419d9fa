package main

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// listenSCTP serves one-to-one associations. The standard library does not know the protocol.
func (s *server) listenSCTP(port int) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return fmt.Errorf("making a socket (does this kernel have SCTP?): %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet6{Port: port}); err != nil {
		return fmt.Errorf("binding it: %w", err)
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return fmt.Errorf("listening on it: %w", err)
	}
	go func() {
		for {
			conn, from, err := unix.Accept(fd)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
				continue
			}
			if err != nil {
				return
			}
			go s.converse(conn, from, port)
		}
	}()
	return nil
}

func (s *server) converse(fd int, from unix.Sockaddr, port int) {
	defer unix.Close(fd)
	client := ""
	if a, ok := from.(*unix.SockaddrInet6); ok {
		client = plain(netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String())
	}
	buf := make([]byte, datagram)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if _, err := unix.Write(fd, []byte(s.answer(string(buf[:n]), client, port))); err != nil {
			return
		}
	}
}
