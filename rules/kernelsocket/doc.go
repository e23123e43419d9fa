// Package kernelsocket opens netlink sockets for those who read and write the kernel's objects.
//
// Invariant: no message waits without limit, and no answer of the kernel ends the process. The
// netlink library promises neither. Not pure: it opens sockets in the network namespace of its
// caller.
package kernelsocket
