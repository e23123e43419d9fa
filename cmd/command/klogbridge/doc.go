// Package klogbridge sends the log of client-go into ours. It is apart from package command,
// because not every program links client-go.
//
// Invariant: there is one log. Not pure: klog is global to the process.
package klogbridge
