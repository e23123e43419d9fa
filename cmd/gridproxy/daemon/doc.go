// Package daemon is what `gridproxy run` runs. It wires the parts of the daemon together, and
// decides nothing about traffic.
//
//	daemon.go      wires source, syncer, driver, servers and Observers
//	run.go         starts every part, and ends with the first that fails
//	prepare.go     run --init-only, and loopback routing
//	only_daemon.go refuses a second daemon in the network namespace
//	source.go      makes the source, whose parts and order are in topology/watch, and reports what it
//	               finds
//	remember.go    reads the saved state, and saves it
//	observers.go   what happens after each run (other_proxy.go has more)
//	quarantine.go  reports Services that the kernel refuses, and ends their flows
//	server.go      serves the HTTP ports
//	status.go      what the daemon answers at the status socket
//	recorder.go    sends Events
//
// Invariant: Run returns within EndLimit after its context has ended or a part has failed.
//
// Not pure.
package daemon
