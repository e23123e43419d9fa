package iptables

import (
	"context"
	"fmt"
	"time"
)

// How long a program may run before it is killed. Each is far above the slowest good run: it is for
// programs that never end.
const (
	RestoreTimeout = 3 * time.Minute  // iptables-restore of one input
	saveTimeout    = RestoreTimeout   // iptables-save, unless the caller sets another limit
	commandTimeout = time.Minute      // iptables on one rule or chain
	versionTimeout = 30 * time.Second // iptables --version
)

const (
	// readTimeout bounds how long changes wait for a read-back. Reading 5,000 Services takes a
	// second, but iptables-nft-save 1.8.9 starts over whenever another process commits a change,
	// which may take minutes.
	readTimeout = 30 * time.Second

	// lockSeconds is how long the tools wait for the lock of iptables-legacy, as in kube-proxy. The
	// nft variant has no lock and ignores it.
	lockSeconds = 5

	// createMax is how many new chains one restore writes ahead of everything else.
	// iptables-nft-restore 1.8.9 looks each new chain up in a linear list: 400 Services with 60
	// endpoints take a minute at once and 4 s in batches of 1,000 chains.
	createMax = 1_000

	// copiesMax is how many copies of one jump one verify removes; the next verify removes more.
	copiesMax = 500

	// dumpTriesMax is how often a list is read that the kernel reports as changed during the dump.
	dumpTriesMax = 5

	// chunkDelay asks for the next chunk at once, after what the caller puts first.
	chunkDelay = time.Nanosecond
)

// withLimit returns ctx for one run of a program. Its Cause says that the limit was exceeded.
func withLimit(ctx context.Context, path string, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s did not end within %s and was killed with all that it started; find out what it waits for "+
		"(a process that holds the xtables lock: fuser /run/xtables.lock; the kernel: dmesg)", path, limit))
}

// inTime returns ctx with a limit for reading rules: see readTimeout. Its Cause says that it was
// exceeded.
func inTime(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("reading the rules took more than %s; another process probably keeps changing them: stop it, or try again", limit))
}
