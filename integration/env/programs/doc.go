// Command programs holds what runs inside the machines and Pods of package machines, in one small
// static program. The name that it is called by chooses what it does:
//
//	pause        keeps a Pod's namespaces alive: it waits, and ends on a signal
//	echo         the server in Pods, and echo get URL, a client; echo-client is the same
//	start        becomes kube-proxy with one variant of iptables first in its PATH
//
// By any other name it is a machine's pid 1, or works for one, and its first argument chooses:
//
//	enter CONFIG       moves into the machine's control groups and becomes the following
//	run CONFIG         boots: mounts what a machine has of its own, starts containerd, imports
//	                   images, starts the kubelet, and starts both again when they end
//	groups NAME PART   makes the control groups NAME/PART and prints them as JSON
//	remove NAME        removes the control groups NAME or NAME/PART, with what is in them
//	sweep NAME DIR...  removes control groups and folders once standard input ends
//
// Invariant: a machine ends with its pid 1, and pid 1 with the process that started it. What is
// mounted is mounted in the machine's own mount namespace only. Not pure: this is all mounts and
// processes.
package main
