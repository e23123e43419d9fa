package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/lockfile"
	"gridproxy/cmd/gridproxy/options"

	"golang.org/x/sys/unix"
)

// oldDaemonLimit is how long a start waits for an old daemon of this network namespace to end. The
// kubelet kills a Pod after the same time.
const oldDaemonLimit = 30 * time.Second

// lockNamespace makes this process the only daemon that serves its network namespace, until
// release is called. Two of them would undo each other's rules. It waits for another one up to
// limit, and then returns an error. Where folder cannot be written, it warns and locks nothing.
// A daemon that runs beside another proxy locks nothing either.
func lockNamespace(ctx context.Context, o options.Options, folder string, limit time.Duration, log *slog.Logger) (release func(), err error) {
	if o.Beside() {
		return func() {}, nil
	}
	lock, err := takeNamespace(ctx, folder, 0)
	var held lockfile.HeldError
	if errors.As(err, &held) && limit > 0 {
		log.Info("another gridproxy run serves this network namespace; waiting for it to end", "holder", held.Holder, "limit", limit)
		lock, err = takeNamespace(ctx, folder, limit)
	}
	switch {
	case errors.As(err, &held):
		return nil, fmt.Errorf("another gridproxy run serves this network namespace: %s (a number of its own PID namespace); end it first; "+
			"only with --shadow or --service-proxy-name two can run (lock %s)", held.Holder, held.Path)
	case err != nil:
		log.Warn(fmt.Sprintf("a second gridproxy run in this network namespace will not be refused: %v; make %s writable", err, folder))
		return func() {}, nil
	}
	return func() { _ = lock.Close() }, nil
}

// takeNamespace takes the lock of the network namespace that this thread is in. If another
// process holds it for as long as limit, the error is a lockfile.HeldError. Numbers of
// namespaces are used again, which does no harm: what counts is who holds the file.
func takeNamespace(ctx context.Context, folder string, limit time.Duration) (*os.File, error) {
	var namespace unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &namespace); err != nil {
		return nil, fmt.Errorf("asking which network namespace this is: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	holder := fmt.Sprintf("process %d, version %s", os.Getpid(), command.ThisBuild().Version)
	return lockfile.Take(ctx, filepath.Join(folder, fmt.Sprintf("daemon-%d.lock", namespace.Ino)), holder)
}
