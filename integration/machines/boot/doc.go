// Package boot is what runs on a machine of package machines in the place of an operating system: pid 1, which
// mounts what a machine has of its own, starts containerd, imports images, starts the kubelet and starts them
// again when they end. Its other half, Sweep, runs outside and removes what namespaces do not take with them
// when their last process ends.
//
// Invariant: a machine ends with its pid 1, and pid 1 with the process that started it. What is mounted is
// mounted in the machine's own mount namespace only. Not pure: this is all mounts and processes.
package boot
