// Package retry computes when controllers try again.
//
// Invariant: a pause has a limit. The package is pure.
package retry

import "time"

// Pause returns the pause after a failure that follows a number of others: first, doubled for each
// of these, and at most last.
func Pause(first, last time.Duration, failures int) time.Duration {
	return min(first<<min(failures, 16), last)
}

// Earlier returns the shorter of two pauses. 0 means that nothing is tried again.
func Earlier(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
