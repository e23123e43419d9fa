package main

import "time"

const (
	// leaseMax bounds --leader-elect-lease-duration, and with it the two durations within a Lease.
	leaseMax = time.Hour
	// namespacesMax bounds --namespaces, because each one has watches of its own, and
	// --accept-namespaces.
	namespacesMax = 100

	// How often the definitions of a group are looked for, and missing ones are logged.
	definitionsPeriod    = time.Second
	definitionsLogPeriod = 10 * time.Minute

	// searchTimeout bounds each search at the start: for what a hub left, and for --namespaces.
	searchTimeout = time.Minute
	// A search of one kind and namespace reads at most pagesMax answers of pageMax objects.
	pageMax  = 500
	pagesMax = 20
)
