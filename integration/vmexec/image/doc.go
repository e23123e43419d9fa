// Package image writes what a virtual machine boots into: a cpio archive ("newc", see
// Documentation/driver-api/early-userspace/buffer-format.rst of the kernel), unpacked by the kernel
// into memory. Archive knows the format; Image picks files of this machine, with the libraries and
// links that they need.
//
// What must hold: a file has the same path in the guest as here, so that no program needs to be told
// where it is.
//
// Not pure: it reads files.
package image
