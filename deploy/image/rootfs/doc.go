// Command rootfs makes the root file system of the container image as a tar: both variants of iptables, modprobe, what
// these need, and nothing else; no shell. It runs no program of the architecture that it makes it for, needs no rights
// and no container tools, and changes nothing on the machine but a cache folder: apt finds and verifies the packages,
// with a state of its own, and dpkg-deb unpacks them.
//
//	rootfs [flags] ARCH OUT.tar      ARCH is amd64, arm64 or armhf (also arm, Go's name for it)
//
// Invariant: equal packages give equal bytes, and a tar in which a program, a library or the target of a symbolic link
// is missing is not written. Not pure: it calls apt-get and dpkg-deb and uses the network.
package main
