// Package host reads the state of this machine (addresses, usable families, sysctls), sets the
// sysctls that Services need, and runs programs that can be killed with all their child processes.
//
// Where each decision is taken:
//
//	sysctls.go  which sysctls are set in every mode, and what to do if one cannot be set
//	cpus.go     how many CPUs the conntrack table is sized for
//	ipvs.go     the sysctls of IPVS mode
//	record.go   which old values are kept, and when they are restored
//	host.go     which addresses and families the machine has
//	watch.go    which address changes are reported
//	program.go  how a program is started and killed
//	module.go   loading a kernel module
//
// Invariant: nf_conntrack_max is never lowered. A value that is already set is not written. A
// sysctl that cannot be written is reported and never fatal, because some are read-only in
// containers and network namespaces.
//
// Not pure: it reads and writes the machine. It keeps no state in memory.
package host
