package lockfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gridproxy/topology/excerpt"

	"golang.org/x/sys/unix"
)

const (
	retryPause     = 50 * time.Millisecond
	holderBytesMax = 200
)

// HeldError means that another process has the lock.
type HeldError struct {
	Path   string
	Holder string // as that process describes itself
}

func (e HeldError) Error() string {
	return fmt.Sprintf("another process holds the lock %s (%s)", e.Path, cmp.Or(e.Holder, "it does not say which"))
}

// Take takes the lock of a file, and makes the file if it is missing. It tries at least once,
// and until ctx ends; then the error is a HeldError. holder describes this process to others;
// if it is empty, the content stays. Closing the file releases the lock.
func Take(ctx context.Context, path, holder string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lock(ctx, file); err == nil && holder != "" {
		err = describe(file, holder)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func lock(ctx context.Context, file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			text := make([]byte, holderBytesMax)
			n, _ := file.ReadAt(text, 0) // a holder may not have described itself yet
			return HeldError{Path: file.Name(), Holder: excerpt.Of(strings.TrimSpace(string(text[:n])))}
		}
	}
}

// describe replaces the content of the file with holder.
func describe(file *os.File, holder string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(holder), 0)
	return err
}
