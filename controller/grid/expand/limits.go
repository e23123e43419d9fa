package expand

import "time"

// Times of children.
const (
	// releaseGrace is for a unit that is released although its grace is "never".
	releaseGrace = 5 * time.Minute
	// firstLossGrace is how much older than the first loss a child must be to count as one that was
	// there before. New children and the marks of losses are written in one turn, by the clocks of
	// the API server and of this controller.
	firstLossGrace = 5 * time.Second
	// rekeyedPeriod is until the controller looks again whether Nodes still carry a former key.
	// Their changes wake only the Grids that name the key now.
	rekeyedPeriod = time.Minute
	// progressTimeout is that of the Deployment controller, unless the template sets another one.
	progressTimeout = 10 * time.Minute

	// freeRepairs are made without a pause if they fall into one contestPeriod. The next one begins
	// a contest, which ends when a contestPeriod has passed without a repair.
	freeRepairs   = 5
	contestPeriod = time.Minute
	// repairDelay is between two repairs of a contested child; it doubles.
	repairDelay    = time.Second
	repairDelayMax = 30 * time.Second
)

// Limits of a status. etcd keeps an object in one piece of at most 1.5 MB, in which the spec has to
// fit too, so the whole status is kept below 300 kB of JSON. Conditions take what the parts below
// leave.
const (
	rowsMax      = 1000
	rowsSizeMax  = 180_000 // of units and clusters together
	stateSizeMax = 80_000

	clustersSizeMax = 80_000
	namesSizeMax    = 5_000 // of each list of templates

	rowMessageMax       = 256
	conditionMessageMax = 2048
)

// Limits of what is read.
const (
	otherKeysMax  = 8       // in OtherKeys; with more, Nodes count as present
	countedMax    = 100_000 // of a counter in a report
	wordBytesMax  = 64      // of a reason in a report
	childBytesMax = 253     // of a name in a report
)

// Limits of one message.
const (
	listedMax       = 10   // names
	clusterNamesMax = 3    // clusters
	failuresMax     = 3    // failures
	failureUnitsMax = 3    // units of one failure
	failureBytesMax = 400  // of one failure
	rivalsMax       = 3    // field managers
	rivalFieldsMax  = 3    // fields of one of them
	rivalBytesMax   = 256  // of the text about them
	commandMax      = 1000 // bytes of entries in a command, so that it is not cut
)
