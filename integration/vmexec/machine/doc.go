// Package machine runs a virtual machine with QEMU: one processor, two serial lines, no disk, no
// network. It uses KVM where that can run a kernel of Debian's, and else emulates the processor.
//
// What must hold: the machine is gone when Run returns, and when the process that runs it is killed.
//
// Not pure: it starts QEMU.
package machine
