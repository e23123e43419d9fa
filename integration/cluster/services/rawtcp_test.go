package services

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// sendOutOfWindow sends a segment to the peer of a TCP connection over IPv4 whose acknowledgement is right
// and whose sequence number is far from the window. It must run in the network of the connection's end.
func sendOutOfWindow(conn net.Conn) error {
	sent, received, err := sequences(conn)
	if err != nil {
		return err
	}
	from, to := addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return fmt.Errorf("opening a raw socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: from.Addr().As4()}); err != nil {
		return fmt.Errorf("binding a raw socket to %s: %w", from.Addr(), err)
	}
	return unix.Sendto(fd, segment(from, to, sent+1<<29, received), 0, &unix.SockaddrInet4{Addr: to.Addr().As4()})
}

// sequences are the next numbers of both directions. Only in repair mode does the kernel tell them.
func sequences(conn net.Conn) (sent, received uint32, err error) {
	tcp, is := conn.(*net.TCPConn)
	if !is {
		return 0, 0, fmt.Errorf("%T is no TCP connection", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		ask := func(queue int) uint32 {
			if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR_QUEUE, queue); err != nil {
				failed = err
			}
			n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ)
			failed = errors.Join(failed, err)
			return uint32(n)
		}
		const on, offWithoutProbe, receiveQueue, sendQueue = 1, -1, 1, 2
		if failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, on); failed != nil {
			return
		}
		received, sent = ask(receiveQueue), ask(sendQueue)
		failed = errors.Join(failed, unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, offWithoutProbe))
	})
	return sent, received, errors.Join(err, failed)
}

// segment is a TCP header with ACK and one byte of data.
func segment(from, to netip.AddrPort, sequence, acknowledged uint32) []byte {
	s := make([]byte, 21)
	binary.BigEndian.PutUint16(s[0:], from.Port())
	binary.BigEndian.PutUint16(s[2:], to.Port())
	binary.BigEndian.PutUint32(s[4:], sequence)
	binary.BigEndian.PutUint32(s[8:], acknowledged)
	s[12], s[13] = 5<<4, 0x10 // five words of header; ACK
	binary.BigEndian.PutUint16(s[14:], 4096)
	s[20] = '?'
	binary.BigEndian.PutUint16(s[16:], checksum(from.Addr(), to.Addr(), s))
	return s
}

func checksum(from, to netip.Addr, segment []byte) uint16 {
	a, b := from.As4(), to.As4()
	pseudo := append(append(append([]byte{}, a[:]...), b[:]...), 0, unix.IPPROTO_TCP, 0, byte(len(segment)))
	all := append(pseudo, segment...)
	if len(all)%2 == 1 {
		all = append(all, 0)
	}
	var sum uint32
	for i := 0; i < len(all); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(all[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := netip.MustParseAddrPort(a.String())
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// sctpSocket says why there are no SCTP sockets here.
func sctpSocket() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
