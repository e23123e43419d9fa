// Package apiserver connects to the first of several API servers that answers.
//
// Invariant: while one of the servers answers, a request reaches it: a server that refuses,
// does not answer or ends the connection is passed over for the next one, at once or within
// seconds, and no server is passed over for good.
//
// Not pure: it opens connections.
package apiserver
