package feed

import "time"

const (
	connectTimeout = 2 * time.Second
	// reconnectDelay is the wait before connecting again. It doubles up to reconnectDelayMax.
	reconnectDelay    = 100 * time.Millisecond
	reconnectDelayMax = 2 * time.Second
	reportPeriod      = 500 * time.Millisecond
	writeTimeout      = 2 * time.Second
	// savePeriod is the least time between two writes of the file. It is read where both this process
	// and the daemon were killed; an end writes it in any case. For 10,000 Services a write takes ten
	// times as much processor time as to take a change.
	savePeriod = 30 * time.Second
)
