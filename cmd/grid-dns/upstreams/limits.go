package upstreams

import "time"

const (
	// QueryTimeout bounds a query. Resolvers give up after 5 s, and often after 2 s.
	QueryTimeout = 1800 * time.Millisecond
	// clusterTimeout bounds a query to the Pods of the cluster's DNS, while there are other upstreams.
	clusterTimeout = QueryTimeout / 2
	// answerTimeout bounds the answer of one upstream.
	answerTimeout = 600 * time.Millisecond
	// connectionGrace is the time until an idle connection to an upstream is closed.
	connectionGrace = 10 * time.Second

	// queriesMax is how many queries wait for upstreams at once.
	queriesMax = 2000
	// serversMax is how many upstreams of each tier are used, as many as forward takes.
	serversMax = 15
	// failuresMax is how many health checks fail in a row until an upstream is left out.
	failuresMax = 2
	// resolvConfMax is more bytes than a resolv.conf has.
	resolvConfMax = 64 << 10
)
