package status

import "time"

const (
	// askTimeout bounds a question to a daemon.
	askTimeout = 2 * time.Second
	// answerMax is the size of its answer in bytes.
	answerMax = 1 << 20

	// requestTimeout bounds one request to the daemon. The answer is small and needs no wait.
	requestTimeout = 2 * time.Second
	// headerMax is the size of a request's header in bytes.
	headerMax = 4 << 10
	// connectionsMax is how many connections are open. A newer one ends the oldest.
	connectionsMax = 64

	// heldMax is how many held endpoints an answer names.
	heldMax = 200
	// quarantinedMax is how many quarantined Service ports an answer names.
	quarantinedMax = 20
	// servicesMax is how many Services of one kind an answer names.
	servicesMax = 3
)
