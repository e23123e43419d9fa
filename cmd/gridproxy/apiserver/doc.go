// Package apiserver connects to the first of several API servers that answers.
//
// Invariant: while one of the servers answers, a connection is made to it: one that refuses is
// passed over at once, one that is silent after a second, and one whose connection has ended,
// for whatever reason, is not the first to be tried again. No server is passed over for good.
//
// Not pure: it opens connections.
package apiserver
