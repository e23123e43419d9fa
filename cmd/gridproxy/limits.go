package main

import "time"

const (
	// apiServerTimeout bounds how long a command waits for an API server.
	apiServerTimeout = 30 * time.Second
	// diffPeriod is the time between two comparisons of diff --wait.
	diffPeriod = time.Second
	// evidenceTimeout bounds how long explain reads the kernel's rules.
	evidenceTimeout = 30 * time.Second
	// netlinkTimeout bounds one message to the kernel on a netlink socket of the library. The library's
	// default is a minute, which is as long as /livez waits.
	netlinkTimeout = 10 * time.Second

	// commandLineMax is the size of another process's command line in bytes.
	commandLineMax = 1 << 20
	// skippedKindsMax is how many kinds are named whose objects are skipped.
	skippedKindsMax = 10
)
