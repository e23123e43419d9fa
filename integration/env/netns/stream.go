package netns

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// AskStream connects over a stream protocol by its number, IPPROTO_TCP or IPPROTO_SCTP, of which the
// standard library knows the first only, sends a message unless it is "", and returns the first that it
// hears.
func (n *Namespace) AskStream(ctx context.Context, protocol int, to netip.AddrPort, message string) (string, error) {
	domain, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		domain, address = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	var answer string
	err := n.Do(func() error {
		fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if deadline, ok := ctx.Deadline(); ok {
			if err := limit(fd, time.Until(deadline)); err != nil {
				return err
			}
		}
		if err := unix.Connect(fd, address); err != nil {
			return err
		}
		if message != "" {
			if _, err := unix.Write(fd, []byte(message)); err != nil {
				return err
			}
		}
		buf := make([]byte, 1500)
		k, err := unix.Read(fd, buf)
		answer = string(buf[:max(k, 0)])
		return err
	})
	return answer, err
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
