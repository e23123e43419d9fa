// Command vmexec runs a test binary on a kernel of Debian's in a virtual machine, for what the
// kernel of this machine lacks: IPVS, dummy links, SCTP. It is what go test starts in place of the
// binary:
//
//	go build -o bin/vmexec ./integration/env/vm
//	go test -count=1 -p 1 -exec "$PWD/bin/vmexec -kernel 6.12" ./integration/node/kernel/...
//
// Standard output, standard error and the exit code are the binary's. 125 means that the machine
// itself failed; the end of its console is then printed.
//
// With -own-clock, time in the machine is what the machine executes: a host that is busy makes
// tests take longer, and nothing in the machine sees it. That is for tests of what happens within
// seconds. All limits inside, -test.timeout too, are then in that time.
//
// What the guest holds is an archive in memory, made again for each run: vmexec itself as the first
// process, the test binary and its folder's testdata at their own paths, the kernel's modules for
// networking, and the tools of GuestTools with their libraries. Of the environment it gets
// GRIDPROXY_*, GO* and REQUIRE, and GRIDPROXY_GUEST, which is the kernel's release. There is no Go
// toolchain: GRIDPROXY_PROGRAMS names a folder with gridproxy and grid-dns, and
// GRIDPROXY_KUBE_PROXY a kube-proxy; all are carried along. What the guest writes is gone when it
// ends, so flags that ask for a profile or for coverage are refused.
//
// What must hold: nothing is left behind, not even when vmexec is killed; nothing is installed; and
// only EnsureKernel writes to the disk, into the user's cache folder.
//
// Files: guest*.go is the first process in the machine, image.go and archive.go what it boots into
// (cpio, "newc", see Documentation/driver-api/early-userspace/buffer-format.rst of the kernel),
// kernel*.go has Debian's cloud kernels at hand, machine.go runs QEMU, program.go puts it together.
//
// What must hold in each: what the program writes reaches the host unchanged and before the exit
// code (it has a serial line of its own, in raw mode; the kernel writes to another one); a file has
// the same path in the guest as here, so that no program needs another path; a folder in the cache
// of kernels is complete, because it is made beside its place and renamed, so two processes may
// fetch at the same time; the machine is gone when Machine.Run returns, and when its process is
// killed.
//
// Not pure: everything here is the machine.
package main
