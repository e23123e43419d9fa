// Command vmexec runs a test binary on a kernel of Debian's in a virtual machine, for what the
// kernel of this machine lacks: IPVS, dummy links, SCTP. It is what go test starts in place of the
// binary:
//
//	go build -o bin/vmexec ./integration/vmexec
//	go test -count=1 -p 1 -exec "$PWD/bin/vmexec -kernel 6.12" ./integration/node/kernel/...
//
// Standard output, standard error and the exit code are the binary's. 125 means that the machine
// itself failed; the end of its console is then printed.
//
// What the guest holds is an archive in memory, made anew for each run: vmexec itself as the first
// process, the test binary and its folder's testdata at their own paths, the kernel's modules for
// networking, and the tools of image.Tools with their libraries. Of the environment it gets
// GRIDPROXY_*, GO* and REQUIRE, and GRIDPROXY_GUEST, which is the kernel's release. There is no Go
// toolchain: GRIDPROXY_BINARY names a gridproxy built before, and GRIDPROXY_KUBE_PROXY a
// kube-proxy; both are carried along. What the guest writes is gone when it ends, so flags that ask
// for a profile or for coverage are refused.
//
// What must hold: nothing is left behind, not even when vmexec is killed; nothing is installed; and
// only kernel.Ensure writes to the disk, into the user's cache folder.
//
// Not pure: everything here is the machine.
package main
