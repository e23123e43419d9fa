// Package host reads what this machine says about itself (addresses, usable families,
// sysctls), sets the few sysctls that Services need, and runs programs so that they can be
// killed with all that they started.
//
// Invariant: it never lowers nf_conntrack_max, never writes a value that is already
// there, and a setting that cannot be written is told, never fatal: containers and
// network namespaces own some of them only for reading.
//
// Not pure: it is the machine's end of the loop. It keeps no state.
package host
