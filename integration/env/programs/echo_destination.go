package main

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// tellDestination has the kernel add to each datagram which address it was sent to. The socket is one of
// both families, where IPv4 addresses have the form of IPv6.
func tellDestination(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	})
	return errors.Join(err, failed)
}

// answerFrom is what has the kernel send an answer from the address that was asked. The interface is left to
// the routes: nil, the kernel's own choice, where the control message is none that we know.
func answerFrom(control []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo {
			info := &unix.Inet6Pktinfo{}
			copy(info.Addr[:], m.Data)
			return unix.PktInfo6(info)
		}
	}
	return nil
}
