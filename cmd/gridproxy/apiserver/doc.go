// Package apiserver connects to the first of several API servers that answers.
//
// Invariant: while one of the servers answers, a connection is made to it: one that refuses is
// passed over at once, one that is silent after a second, and one whose last connection has
// ended, for whatever reason, is not the first to be tried again. No server is passed over for good.
//
// What a server answers is not looked at: one that answers each request with an error (5xx, 401)
// is not left while its connection stands. Who runs it must take it from the list, or stop it.
//
// Not pure: it opens connections.
package apiserver
