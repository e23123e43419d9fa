package netns

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DialStream connects over a stream protocol by its number, IPPROTO_TCP or IPPROTO_SCTP. The
// standard library knows only the first. The connection comes from this local port; 0 = any. Until
// the deadline of ctx each step on it, connecting included, may take as long as was left when it
// was opened.
func (n *Namespace) DialStream(ctx context.Context, protocol int, port uint16, to netip.AddrPort) (*os.File, error) {
	domain := unix.AF_INET6
	if to.Addr().Is4() {
		domain = unix.AF_INET
	}
	var file *os.File
	err := n.Do(func() error {
		fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		file = os.NewFile(uintptr(fd), "stream to "+to.String())
		if deadline, ok := ctx.Deadline(); ok {
			if err := limit(fd, time.Until(deadline)); err != nil {
				return err
			}
		}
		if port != 0 {
			err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, sockaddr(n.Addr(FamilyOf(to.Addr())), port)))
			if err != nil {
				return err
			}
		}
		return Connect(ctx, fd, sockaddr(to.Addr(), to.Port()))
	})
	if err != nil && file != nil {
		file.Close()
	}
	return file, err
}

// Connect connects a socket. A signal to the thread ends the system call, which the kernel does
// not start again where a time limit is set (signal(7)); it goes on connecting, and Connect waits
// for the result, or for the end of ctx.
func Connect(ctx context.Context, fd int, to unix.Sockaddr) error {
	err := unix.Connect(fd, to)
	if errors.Is(err, unix.EINPROGRESS) { // the time limit of the socket is over
		return unix.ETIMEDOUT
	}
	for errors.Is(err, unix.EINTR) {
		wait := -1
		if deadline, ok := ctx.Deadline(); ok {
			wait = int(max(0, time.Until(deadline)).Milliseconds())
		}
		var ready int
		switch ready, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, wait); {
		case err != nil:
		case ready == 0:
			return unix.ETIMEDOUT
		default:
			return connected(fd)
		}
	}
	return err
}

// connected is the outcome of connecting a socket that is ready.
func connected(fd int) error {
	number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && number != 0 {
		err = syscall.Errno(number)
	}
	return err
}

func sockaddr(addr netip.Addr, port uint16) unix.Sockaddr {
	if addr.Is4() {
		return &unix.SockaddrInet4{Port: int(port), Addr: addr.As4()}
	}
	return &unix.SockaddrInet6{Port: int(port), Addr: addr.As16()}
}

// AskStream connects as DialStream, from any port, sends a message unless it is "", and returns the
// first that it hears.
func (n *Namespace) AskStream(ctx context.Context, protocol int, to netip.AddrPort, message string) (string, error) {
	conn, err := n.DialStream(ctx, protocol, 0, to)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if message != "" {
		if _, err := conn.WriteString(message); err != nil {
			return "", err
		}
	}
	buf := make([]byte, 1500)
	k, err := conn.Read(buf)
	return string(buf[:k]), err
}

// limit says how long each step may take. No time at all would be no limit.
func limit(fd int, d time.Duration) error {
	value := unix.NsecToTimeval(max(d, time.Millisecond).Nanoseconds())
	for _, option := range []int{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &value); err != nil {
			return err
		}
	}
	return nil
}
