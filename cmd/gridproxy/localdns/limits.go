package localdns

import "time"

// After these, DNS on this node goes back to the cluster's.
const (
	// reportTimeout bounds the time since the last report of a client, which makes two a second.
	reportTimeout = 2 * time.Second
	// staleTimeout bounds how long a client answers from older names.
	staleTimeout = 5 * time.Second
	// answerTimeout bounds the time since the last answer to a query of the daemon's own.
	answerTimeout = 3 * time.Second
)

const (
	// askPeriod is the time between two queries of the daemon's own to a DNS server of this node.
	askPeriod = time.Second
	// decidePeriod is the time between two decisions about where queries go, if nothing else gives
	// reason to decide. A server that hangs takes queries until then.
	decidePeriod = 200 * time.Millisecond
	// startGrace is how long what an earlier daemon led stays as it is once names are known, until the
	// DNS servers of this node have connected again, which takes them up to three seconds on a machine
	// that is not busy. Without the API server names are known ten seconds after the start.
	startGrace = 10 * time.Second
	// prepareFailuresMax is how often in a row Prepare may fail for a family that it succeeded for. The
	// kernel may have no time for an answer, and what it needs is still there.
	prepareFailuresMax = 3

	// returnDelay is how long the DNS servers of this node must be well until queries go back to them,
	// when queries left them twice within leftPeriod. It doubles for each further time, up to
	// returnDelayMax. So servers that fail and recover again and again, such as under a flood of
	// queries, do not end the flows of clients with each turn. After the first time queries go back at
	// once.
	returnDelay    = 2 * time.Second
	returnDelayMax = time.Minute
	leftPeriod     = 5 * time.Minute
	// leftMax is how many times are remembered. With more of them returnDelay does not grow.
	leftMax = 8

	// namesPeriod is the least time from the start of one decision about names to that of the next. It
	// grows up to namesPeriodMax.
	namesPeriod    = 10 * time.Millisecond
	namesPeriodMax = 50 * time.Millisecond
	// listenDelay is the wait after the feed could not be served, as with the daemon's ports.
	listenDelay = 5 * time.Second
	// writeTimeout bounds sending one update.
	writeTimeout = 30 * time.Second
	// clientsMax is how many DNS servers are connected: two take turns at an upgrade, and an operator
	// may look.
	clientsMax = 4

	// listenersPeriod is the time between two looks for other processes at the addresses.
	listenersPeriod = 5 * time.Second
	// queryTimeout bounds most answers, except those of slow names outside. It is less than the time
	// that a server answers after it has left.
	queryTimeout = time.Second
)
