// Package security runs what the chart makes on real machines and looks at what its processes may do: capabilities,
// seccomp, what they can write to; and what becomes of the daemon without each of its capabilities. Which rights the
// accounts need is shown in package rights, without machines.
//
// Invariant: nothing outlives the test; see package machines. Not pure.
package security
