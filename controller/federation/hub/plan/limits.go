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
	objectMax       = 700_000 // bytes: a bundle is to have room for more than one
	selectorMax     = 4096    // bytes of AnnotationClusters
	requirementsMax = 20      // of AnnotationClusters: each is compared for each cluster
	headerMax       = 1024    // bytes of a file in an archive, beside its object
)

// Limits of the status of a FleetCluster.
const (
	withdrawnMax  = 1000 // UIDs in withdrawn; when it is full, further removals wait
	unreportedMax = 200  // of these, without a report, which may be late; the oldest are forgotten first
	releasedMax   = 100  // UIDs in a command for a person
	notesMax      = 3    // reasons of a FleetCluster
	explainedMax  = 100  // Grids of a cluster that have a message
	problemsMax   = 10   // problems of a heartbeat

	// removalsMax bounds the rows in status.removals, and so how many Grids leave a cluster within
	// an hour. Those of one namespace have at most half of them.
	removalsMax = 200
)
