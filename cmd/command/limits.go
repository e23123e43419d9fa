package command

import "time"

const (
	completionTimeout = 2 * time.Second
	// completionsMax is how many names a shell gets.
	completionsMax = 500
	// completionMax is the length of the longest NAMESPACE/NAME, with svc/ or service/ before it.
	completionMax = len("service/") + 63 + 1 + 253

	// progressDelay is how long a command is silent about what it waits for.
	progressDelay = 2 * time.Second
	// progressPeriod is the time between two writes of the time on a terminal.
	progressPeriod = time.Second
)
