// Package apiserver connects to one of several API servers, and fails over to the next one.
//
// Invariant: while one of the servers answers, the node gets a connection to it. A server that
// refuses a connection is skipped at once, and one that does not answer after a second. After the
// last connection to a server has ended, for any reason, the next one is tried first. A server that
// answers reads only with errors (5xx, 401), or not at all, is abandoned: its connections are
// closed. Every server is tried again later.
//
// A server that loses its etcd may keep serving watches from its cache. A client cannot detect
// that. The server's own /livez does, so that its operator's probes restart it.
//
//	reserve.go       the API servers whose addresses no Service may take
//	config.go        how a command or the daemon connects, by its flags: the order of the servers,
//	                 and the credentials
//	dialer.go        connects, and fails over
//	round_tripper.go reports to the Dialer what a server answers
//	failures.go      decides when a server is abandoned
//	limits.go        times and bounds
//
// Not pure: it opens connections.
package apiserver
