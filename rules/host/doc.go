// Package host reads the state of this machine (addresses, usable families, sysctls), sets the
// sysctls that Services need, and runs programs that can be killed with all their child processes.
//
// Where to look:
//
//   - the sysctls of every mode, what happens if one cannot be set, and for how many CPUs the
//     conntrack table is sized: sysctls.go; those of IPVS mode: ipvs.go
//   - the old values that are kept, and when they are restored: record.go
//   - which addresses and families the machine has: host.go; which changes of them are reported:
//     watch.go
//   - how a program is started and killed, and a kernel module is loaded: program.go; processor
//     time used so far: processor.go
//   - times and bounds: limits.go
//
// Invariant: nf_conntrack_max is never lowered. A value that is already set is not written. A
// sysctl that cannot be written is reported and never fatal, because some are read-only in
// containers and network namespaces.
//
// Not pure: it reads and writes the machine. It keeps no state in memory.
package host
