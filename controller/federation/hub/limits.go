package hub

import "time"

// Times of decisions.
const (
	// eventDelay: one decision is taken on all events of this time.
	eventDelay = 100 * time.Millisecond
	// reportDelay is for reports and for Leases that say something new: while Pods are replaced
	// everywhere, there is always another.
	reportDelay = time.Second
	// renewalDelay is for Leases that are renewed and say nothing new. In between, a member counts
	// as not heard. It is much less than the minute in which members renew.
	renewalDelay = 5 * time.Second

	// retryDelay follows a failure; it doubles.
	retryDelay    = 50 * time.Millisecond
	retryDelayMax = 30 * time.Second

	// cacheDelay is before a reconcile that waits for the caches or for another part of this
	// process; it doubles up to cacheTimeout.
	cacheDelay = 200 * time.Millisecond
	// cacheTimeout bounds the wait for the caches to show our writes: another client may have
	// deleted a new bundle, or etcd was restored, so that they never do.
	cacheTimeout = 5 * time.Second

	// excessDelay follows the deletion of reports of a cluster; it doubles.
	excessDelay    = time.Minute
	excessDelayMax = time.Hour
)

// Limits of one decision.
const (
	workers   = 8   // writes that are under way at the same time
	errorsMax = 10  // that are named
	eventsMax = 20  // that are sent; the others follow with the next decisions
	excessMax = 100 // reports that are deleted

	// attempts is how often a finalizer is added to a Grid that others write at the same time. All
	// but the first begin with a live read.
	attempts = 5
)

// Limits of what a member says of itself, in bytes.
const (
	heartbeatMax = 16 << 10
	wordMax      = 128
	problemsMax  = 10 // problems
)
