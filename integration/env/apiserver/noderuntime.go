package apiserver

import (
	"context"
	"fmt"
	"io"
)

// containerdVersion is stamped into containerd, as its own build does: kubelet parses it. It is the
// version that integration/tools/node requires.
const containerdVersion = "v2.4.2"

// EnsureNodeRuntime is Ensure for what runs containers on a machine, in the versions that
// integration/tools/node names: containerd, its shim, ctr, runc, and the plugins bridge, loopback,
// host-local and portmap of the container network interface. runc needs gcc, pkg-config and the headers
// of libseccomp.
func EnsureNodeRuntime(ctx context.Context, progress io.Writer) (Tools, error) {
	const containerd = "github.com/containerd/containerd/v2"
	const cni = "github.com/containernetworking/plugins/plugins/"
	dir, err := build{
		what:   "containerd " + containerdVersion + ", runc and network plugins once (about 2 minutes on two cores)",
		module: "tools/node", files: []string{"go.mod", "go.sum"},
		flags: []string{
			"-trimpath", "-tags", "no_btrfs,no_devmapper,no_zfs,no_aufs",
			"-ldflags", "-s -w -X " + containerd + "/version.Version=" + containerdVersion,
		},
		targets: []target{
			// runc first: where the C compiler is missing, that is said at once.
			{
				name: "runc", pkg: "github.com/opencontainers/runc", cgo: true,
				flags: []string{"-tags", "netgo,osusergo,seccomp", "-ldflags", "-s -w -extldflags -static"},
			},
			{name: "containerd", pkg: containerd + "/cmd/containerd"},
			{name: "containerd-shim-runc-v2", pkg: containerd + "/cmd/containerd-shim-runc-v2"},
			{name: "ctr", pkg: containerd + "/cmd/ctr"},
			{name: "bridge", pkg: cni + "main/bridge"},
			{name: "loopback", pkg: cni + "main/loopback"},
			{name: "host-local", pkg: cni + "ipam/host-local"},
			{name: "portmap", pkg: cni + "meta/portmap"},
		},
	}.ensure(ctx, progress)
	if err != nil {
		return Tools{}, fmt.Errorf("building the container runtime (on Debian this needs `apt-get install gcc pkg-config libseccomp-dev`): %w", err)
	}
	return Tools{Dir: dir}, nil
}
