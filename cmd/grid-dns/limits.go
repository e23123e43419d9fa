package main

import "time"

const (
	// connectionsMax is how many TCP connections are open at once, at each address. One costs a file
	// descriptor and some kilobytes, also while it is idle, for up to ten seconds after its last query.
	connectionsMax = 1024
	// connectionsOfClientMax is how many of them one source address may have.
	connectionsOfClientMax = 128
	// resetLogPeriod is the least time between two log lines about connections that were reset.
	resetLogPeriod = time.Minute

	// queriesMax is how many queries are under way at once, at all addresses together. A query of an
	// outside name is under way until an upstream has answered, up to upstreams.QueryTimeout.
	queriesMax = 1024
	// queriesOfClientMax is how many of them one source address may have. A full socket buffer has
	// about as many.
	queriesOfClientMax = 256
	// When queriesBusy are under way, a client may have queriesOfClientBusyMax: clients with more take
	// no more than this.
	queriesBusy            = queriesMax * 3 / 4
	queriesOfClientBusyMax = 16
	// queriesOfDaemonMax is how many queries of the daemon are under way, beside the others. It asks
	// from the address of this server, as Pods of the host network may.
	queriesOfDaemonMax = 128

	// resolvConfPeriod is the time after which resolv.conf is read again. A DHCP client writes it.
	resolvConfPeriod = 10 * time.Second

	// firstAddressPeriod is the time between two looks for the first address to listen at.
	firstAddressPeriod = 100 * time.Millisecond
	// addressPeriod is the time between two looks for the other addresses.
	addressPeriod = time.Second
	// startLogPeriod is the time between two log lines about what the start waits for.
	startLogPeriod = 30 * time.Second

	// leaveDelay is the time from reporting that this server ends until it does: the daemon leads
	// queries elsewhere meanwhile.
	leaveDelay = 2 * time.Second
	// leaveAloneDelay is the same if no daemon reads the report, such as while both are removed.
	// Queries come for as long as the kernel holds what was led: 30 s.
	leaveAloneDelay = 31 * time.Second
	// endTimeout bounds how long the process runs after SIGTERM.
	endTimeout = leaveAloneDelay + 7*time.Second
)
