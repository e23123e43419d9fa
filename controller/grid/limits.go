package grid

import "time"

// Pauses before a Grid is reconciled again. Those with a Max double.
const (
	retryDelay    = 20 * time.Millisecond // after a failure
	retryDelayMax = 30 * time.Second

	// noDelay follows a refusal. What follows from it, such as a replacement, can be decided only
	// afterwards, and no event of the cluster may follow.
	noDelay = time.Nanosecond
	// conflictDelay follows attempts that were all lost. It doubles up to retryDelayMax: a webhook
	// may cause a conflict each time.
	conflictDelay = 50 * time.Millisecond
	// editedDelay is before a deletion is decided again for a Grid that has been edited, unless an
	// event comes first.
	editedDelay = time.Second
	// reportDelay is for reports about a Grid. Whoever has a cluster can write reports about any
	// Grid whose UID he knows.
	reportDelay = time.Second
	// evictionDelay follows a PodDisruptionBudget's refusal. It is about that of kubectl drain.
	evictionDelay = 10 * time.Second

	// refusedDelay is before a refused child is tried again. Missing rights concern everything that
	// the controller does, and an API server that has just started refuses everything, so rightsDelay
	// is shorter.
	refusedDelay    = 10 * time.Second
	refusedDelayMax = 10 * time.Minute
	rightsDelay     = time.Second
	rightsDelayMax  = 30 * time.Second
)

// missingServiceGrace is for a Service that a template names: it may be applied after the Grid.
const missingServiceGrace = time.Minute

// Limits of one execution.
const (
	// executionTimeout ends the start of new steps. The others follow in the next execution, after
	// the Grids that wait, and are decided on again. What has begun is waited for: a canceled apply
	// might never succeed.
	executionTimeout = 10 * time.Second
	// writers is how many children of one Grid are applied at the same time, so that one that takes
	// long, because of a slow webhook, does not hold up the others.
	writers = 8
	// attempts is how often one step applies a child that others write at the same time. All but
	// the first begin with a live read, because a frequent writer is always ahead of the cache.
	attempts = 5

	workers  = 8  // Grids of a kind that are reconciled at the same time
	wokenMax = 64 // Grids that wait to be woken
)

// Limits of what is written and kept.
const (
	noticesMax = 20   // Events of one status; if more units change together, the conditions report it
	noteMax    = 1024 // bytes of a message that the API server accepts in an Event
	answerMax  = 4096 // bytes of an answer for each child: webhooks may answer with any amount of text
)

// Limits of a report in the cache. Whoever has a cluster can write any report into its namespace;
// no report that a grid-controller makes has more.
const (
	reportRowsMax       = 1000
	reportTextMax       = 512 // bytes of one text
	reportConditionsMax = 20
)
