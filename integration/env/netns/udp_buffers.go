package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// GrowUDPBuffers lets each UDP socket of the programs in the namespace hold so many bytes that were
// not read yet, whatever the machine allows. It is for a program that gets no processor time while
// this machine, which is a whole cluster, has too much to do.
func (n *Namespace) GrowUDPBuffers(bytes int) error {
	var self syscall.Stat_t
	if err := syscall.Fstat(n.FD(), &self); err != nil {
		return fmt.Errorf("looking at the namespace %s: %w", n.Name, err)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	grown := 0
	for _, dir := range dirs {
		var s syscall.Stat_t
		if syscall.Stat(filepath.Join(dir, "ns/net"), &s) != nil || s.Ino != self.Ino || s.Dev != self.Dev {
			continue // of another namespace, or it has ended
		}
		more, err := growUDPBuffers(dir, bytes)
		if err != nil {
			return fmt.Errorf("growing the UDP buffers of process %s: %w", filepath.Base(dir), err)
		}
		grown += more
	}
	if grown == 0 {
		return fmt.Errorf("no program in %s has a UDP socket", n.Name)
	}
	return nil
}

// growUDPBuffers returns how many sockets of a process it has changed.
func growUDPBuffers(dir string, bytes int) (grown int, err error) {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return 0, err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return 0, nil // it has ended meanwhile
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(process) //nolint:errcheck // nothing was written
	files, err := os.ReadDir(filepath.Join(dir, "fd"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // likewise
	}
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		number, err := strconv.Atoi(f.Name())
		if target, readErr := os.Readlink(filepath.Join(dir, "fd", f.Name())); errors.Join(err, readErr) != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		socket, err := unix.PidfdGetfd(process, number, 0)
		if err != nil {
			continue // it was closed meanwhile
		}
		if proto, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL); err == nil && proto == unix.IPPROTO_UDP {
			if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bytes); err != nil {
				_ = unix.Close(socket)
				return grown, err
			}
			grown++
		}
		_ = unix.Close(socket)
	}
	return grown, nil
}
