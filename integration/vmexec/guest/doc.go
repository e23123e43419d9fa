// Package guest is the first process of a virtual machine: it mounts what programs expect, runs one
// program, tells its exit code, and switches the machine off.
//
// What must hold: what the program writes reaches the host unchanged and before the exit code. It has
// a serial line of its own, in raw mode; the kernel writes to another one.
//
// Not pure: it is the machine.
package guest
