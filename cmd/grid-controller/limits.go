package main

import "time"

const (
	// leaseMax bounds --leader-elect-lease-duration, and with it the two durations within a Lease.
	leaseMax = time.Hour
	// namespacesMax bounds --namespaces, because each one has watches of its own, and
	// --accept-namespaces.
	namespacesMax = 100

	// definitionsPeriod is the time between two looks for the definitions of a group.
	definitionsPeriod = time.Second
	// definitionsLogPeriod is the time between two log lines about definitions that are missing.
	definitionsLogPeriod = 10 * time.Minute

	// searchTimeout bounds each search at the start: for what a hub left, and for --namespaces.
	searchTimeout = time.Minute
	// pageMax is how many objects of a search one answer of the API server has.
	pageMax = 500
	// pagesMax is how many answers are read for one kind and namespace.
	pagesMax = 20
)
