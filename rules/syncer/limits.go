package syncer

import "time"

const (
	// retryDelay is the wait before a retry. It doubles up to retryDelayMax, unless the verify period
	// is shorter.
	retryDelay    = time.Second
	retryDelayMax = 10 * time.Second

	// After a run that took longer than slowRun and failed for one family, that family is not retried
	// for slowDelayFactor times as long, up to slowDelayMax. The other family's changes are written
	// meanwhile. Waiting for the xtables lock takes less than slowRun, so it is retried soon.
	slowRun         = 30 * time.Second
	slowDelayFactor = 10
	slowDelayMax    = 10 * time.Minute

	// Writing that takes less processor time than costlyWrite consists mostly of starting programs, and
	// does not say what reading costs.
	costlyWrite = 500 * time.Millisecond

	// verifyDelayFactor keeps what verifications cost at a fiftieth of one processor, unless
	// verifyDelayMax applies: a second of processor time is followed by 50 seconds without a
	// verification. A twentieth was tried: with 10,000 Services a change then cost more processor time
	// than kube-proxy's.
	verifyDelayFactor = 50
	// verifyDelayMax limits that delay, so that one costly verification, such as one that tries again
	// what the kernel refused, does not leave the kernel unread for hours.
	verifyDelayMax = time.Hour
	// overduePeriods is how many verify periods changes come before a verification.
	overduePeriods = 2

	// stopGrace is how long a run may continue after the Syncer was told to stop. Most runs end within
	// it, and the process must end within 5 s of SIGTERM.
	stopGrace = 3 * time.Second
)
