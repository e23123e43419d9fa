package plan

import "time"

// BundleDelayMax is before a bundle of MaxBundle is written again. Smaller ones wait for less, but
// at least for bundleDelay. So a client that edits Grids in a loop causes no more than 180 kB/s of
// writes in each cluster.
const (
	BundleDelayMax = 5 * time.Second
	bundleDelay    = 500 * time.Millisecond
)

// StatusPeriod is at least between two writes of a status that differ only in numbers and messages,
// which a cluster can change as it likes.
const StatusPeriod = 10 * time.Second

// Times of a cluster.
const (
	heartbeatTimeout = 90 * time.Second // before a cluster is silent; it renews its Lease each minute
	detachPollPeriod = time.Second      // Flux sends no event when it drops a cluster
	abandonGrace     = 24 * time.Hour   // a deleted Grid waits for a cluster in which nothing can be changed
)

// Limits of a Grid that is sent.
const (
	maxObject       = 700_000 // bytes: a bundle is to have room for more than one
	maxSelector     = 4096    // bytes of AnnotationClusters
	maxRequirements = 20      // of AnnotationClusters: each is compared for each cluster
	maxHeader       = 1024    // bytes of a file in an archive, beside its object
)

// Limits of the status of a FleetCluster.
const (
	maxWithdrawn  = 1000 // UIDs in withdrawn; when it is full, further removals wait
	maxUnreported = 200  // of these, without a report, which may be late; the oldest are forgotten first
	maxReleased   = 100  // UIDs in a command for a person
	maxNotes      = 3    // reasons of a FleetCluster
	maxMessage    = 512  // bytes of a message of a Grid, or of one problem
	maxExplained  = 100  // Grids of a cluster that have one
	maxProblems   = 10   // problems of a heartbeat

	// maxRemovals bounds the rows in status.removals, and so how many Grids leave a cluster within
	// an hour. Those of one namespace have at most half of them.
	maxRemovals = 200
)
