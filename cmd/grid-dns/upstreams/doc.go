// Package upstreams is the plugin of CoreDNS that forwards what is not the cluster's: to the Pods
// of the cluster's DNS, so that the user's stub domains hold, and to the servers of this machine
// where these do not answer.
//
//	handler.go     which of them are asked, and for how long
//	resolvconf.go  the servers of this machine
//	limits.go      times and bounds
//
// Invariant: neither this server's own address nor the cluster IP that leads to it is an upstream.
// A server of this machine that forwards to that cluster IP is not found out. A query has an
// answer, or a failure, within QueryTimeout.
//
// Not pure: it forwards, through CoreDNS' own forward plugin.
package upstreams
