package site

import "time"

// Times of the controller.
const (
	retryDelay    = 20 * time.Millisecond // after a failure; it doubles
	retryDelayMax = 30 * time.Second
	cacheDelay    = 100 * time.Millisecond // before a reconcile that waits for the caches
	usesTimeout   = 5 * time.Second        // of the first decision, which waits for Grids and Services
	usesPeriod    = 10 * time.Second       // what could not be read is looked for again
)

// workers is how many writes are under way at the same time.
const workers = 8
