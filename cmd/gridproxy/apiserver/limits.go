package apiserver

import "time"

const (
	// nextServerDelay is the time without an answer after which the next server is tried in parallel.
	nextServerDelay = time.Second
	// readTimeout is when a read without an answer counts as a failure. kube-apiserver ends most reads
	// after a minute, without an answer. Without its etcd it may never answer a watch.
	readTimeout = 50 * time.Second
	// failuresMax is how many failures in a row make the Dialer abandon a server. A single one may be a
	// restart, or an etcd that is lost for a moment.
	failuresMax = 3

	// If a server loses power or its link, the kernel detects it by TCP keepalive, or by data that is
	// not acknowledged, long before HTTP/2 does.
	keepaliveDelay        = 10 * time.Second
	keepalivePeriod       = 5 * time.Second
	keepaliveProbesMax    = 2
	unacknowledgedTimeout = 20 * time.Second

	// credentialMax is the size of a token or a CA bundle in bytes.
	credentialMax = 1 << 20
)
