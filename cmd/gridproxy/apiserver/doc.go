// Package apiserver connects to the first of several API servers that answers.
//
// Invariant: while one of the servers answers, a connection is made to it: one that refuses is
// passed over at once, one that is silent after a second, and one whose last connection has ended,
// for whatever reason, is not the first to be tried again. One that answers reads with errors (5xx,
// 401) and nothing else, or does not answer them, has its connections ended for that. No server is
// passed over for good.
//
// A server that loses its etcd may go on serving watches from what it has. That cannot be told from
// here; its own /livez can, and who runs it restarts it for that.
//
// Not pure: it opens connections.
package apiserver
