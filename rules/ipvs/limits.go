package ipvs

import "time"

const (
	// drainPeriod is the time after which a Backend asks to be called again while real servers drain.
	drainPeriod = 5 * time.Second
	// listTimeout is kernelsocket.AnswerLimit for a whole list of IPVS, which is many messages.
	listTimeout = time.Minute

	// linkTriesMax is how often a list of links is requested that changes while the kernel sends it.
	linkTriesMax = 5
	// readTriesMax is how often the list of servers is read until it is the same twice.
	readTriesMax = 5
	// countedMax is for how many virtual servers connections are requested one by one. For more of them
	// /proc is read, whose cost grows with the number of all virtual servers.
	countedMax = 32
	// entriesMax is how many entries a set takes. It is kube-proxy's number: ipset(8) refuses to create
	// a set that exists with another one, so kube-proxy could not take our sets over.
	entriesMax = 65536
	// errorsMax is how many errors of one sync are reported in full.
	errorsMax = 5
)
