package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gridproxy/cmd/gridproxy/lockfile"

	"golang.org/x/sys/unix"
)

// The limits of the socket.
const (
	pathBytesMax = 107 // of the kernel, without the zero byte at the end
	answerLimit  = time.Second
	lockLimit    = 2 * time.Second
)

// ErrInUse means that another process listens at the socket.
var ErrInUse = errors.New("another process listens there, such as another gridproxy run")

// Listen makes the socket with mode 0600, and its folder if that is missing. A socket at which
// no process listens any more is replaced. One that answers stays, and the error is ErrInUse;
// so does a file that is no socket. The path is locked meanwhile, by a file beside it, so that
// of two daemons that start at once only one gets it.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > pathBytesMax {
		return nil, fmt.Errorf("the path of the socket has %d bytes, and the kernel takes at most %d", len(path), pathBytesMax)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	lock, err := lockfile.Take(limited, path+".lock", "")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := removeStale(ctx, path); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	owners := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		// The kernel makes the file with the mode that the socket has before bind(2), so the file is
		// never open to others.
		err := c.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, failed)
	}}
	return owners.Listen(ctx, "unix", path)
}

// removeStale removes a socket at which no process listens. The error is ErrInUse if one does,
// or if that cannot be found out.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is no socket")
	}
	conn, err := (&net.Dialer{Timeout: answerLimit}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // only that it opened counts
		return ErrInUse
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	default:
		return fmt.Errorf("%w: %w", ErrInUse, err)
	}
}
