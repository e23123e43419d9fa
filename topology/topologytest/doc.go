// Package topologytest draws random Snapshots, and random changes to them, for property
// tests of everything that starts from one.
package topologytest
