// Package apiserver connects to the first of several API servers that answers.
//
// Invariant: while one of the servers answers, a connection is made to it: one that refuses is
// passed over at once, one that is silent after a second, and one whose last connection has
// ended, for whatever reason, is not the first to be tried again. One that answers reads with errors
// (5xx, 401) and nothing else has its connections ended for that. No server is passed over for good.
//
// Only answers are judged: a server whose watches stand and bring nothing, because it has lost its
// etcd since, is left when something is read anew.
//
// Not pure: it opens connections.
package apiserver
