package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Version is the Kubernetes release that integration/tools/kubernetes is built from. It is stamped
// into the binary, because clients that parse the version of an unstamped API server fail.
const Version = "v1.37.2"

// OlderVersion is the release before it. The suites whose names end in 1.36 run against it, by
// means of other go.mod files in the same folders.
const OlderVersion = "v1.36.3"

// versionVariable chooses the release that tests start, Version or OlderVersion.
const versionVariable = "GRIDPROXY_KUBERNETES"

// programs are the names that the binary can be called by and that are links to it. kube-proxy is
// one more, but that is also built alone: its memory is compared with ours, and it should not have
// to carry what the others bring.
var programs = [...]string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl",
}

// Tools is a folder that holds the built binary and a link for each program in it. It can serve as
// envtest's KUBEBUILDER_ASSETS.
type Tools struct{ Dir string }

// Path is the file to execute to run a program.
func (t Tools) Path(program string) string { return filepath.Join(t.Dir, program) }

// Ensure returns the tools of the release that the environment chooses, or else of Version.
func Ensure(ctx context.Context, progress io.Writer) (Tools, error) {
	return EnsureVersion(ctx, cmp.Or(os.Getenv(versionVariable), Version), progress)
}

// EnsureVersion returns the tools of a release, and builds them first if this machine does not have
// them: some 400 s on two cores, once. While it builds it reports to progress. Two processes that
// need them at the same time build once: the other waits.
func EnsureVersion(ctx context.Context, version string, progress io.Writer) (Tools, error) {
	modFile, known := map[string]string{Version: "go.mod", OlderVersion: "go-1.36.mod"}[version]
	if !known {
		return Tools{}, fmt.Errorf("there is no Kubernetes %s to test with: set %s to %s or %s", version, versionVariable, Version, OlderVersion)
	}
	dir, err := build{
		what:   fmt.Sprintf("etcd and Kubernetes %s once (about 7 minutes on two cores, 2500 packages)", version),
		module: "tools/kubernetes", files: []string{modFile, strings.TrimSuffix(modFile, ".mod") + ".sum", "main.go"},
		flags: buildFlags(version, modFile), links: programs[:],
		targets: []target{{name: "kcp", pkg: "."}, {name: "kube-proxy", pkg: "k8s.io/kubernetes/cmd/kube-proxy"}},
	}.ensure(ctx, progress)
	if err != nil {
		return Tools{}, fmt.Errorf("building the control plane: %w", err)
	}
	return Tools{Dir: dir}, nil
}

// buildFlags stamps the version the way that Kubernetes' own build does, into both of the packages
// that carry it.
func buildFlags(version, modFile string) []string {
	number := strings.Split(strings.TrimPrefix(version, "v"), ".")
	stamps := [][2]string{
		{"gitVersion", version}, {"gitMajor", number[0]}, {"gitMinor", number[1]}, {"gitTreeState", "archive"},
	}
	link := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, s := range stamps {
			link += fmt.Sprintf(" -X %s.%s=%s", pkg, s[0], s[1])
		}
	}
	flags := []string{"-trimpath", "-ldflags", link}
	if modFile != "go.mod" {
		flags = append(flags, "-modfile="+modFile)
	}
	return flags
}

// EnsureHelm does what Ensure does for helm, in the version that integration/tools/deploy names.
// It returns the path of the program. Without a cluster to ask, a helm that is not told otherwise
// takes Kubernetes 1.20 for granted.
func EnsureHelm(ctx context.Context, progress io.Writer) (string, error) {
	const chartutil = "helm.sh/helm/v3/pkg/chartutil"
	kubernetes := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	link := fmt.Sprintf("-s -w -X %s.k8sVersionMajor=%s -X %s.k8sVersionMinor=%s", chartutil, kubernetes[0], chartutil, kubernetes[1])
	dir, err := build{
		what:   "helm once (about 2 minutes on two cores, 700 packages)",
		module: "tools/deploy", files: []string{"go.mod", "go.sum"}, flags: []string{"-trimpath", "-ldflags", link},
		targets: []target{{name: "helm", pkg: "helm.sh/helm/v3/cmd/helm"}},
	}.ensure(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	return filepath.Join(dir, "helm"), nil
}

// EnsureCoreDNS does what Ensure does for CoreDNS with the plugins of a cluster's DNS, in the
// version that integration/agreement compares names with. It returns the path of the program.
func EnsureCoreDNS(ctx context.Context, progress io.Writer) (string, error) {
	return ensureCoreDNS(ctx, "coredns", "CoreDNS once (about 2 minutes on two cores)", progress)
}

// EnsureNodeLocalDNS is EnsureCoreDNS with the plugins of NodeLocal DNSCache only.
func EnsureNodeLocalDNS(ctx context.Context, progress io.Writer) (string, error) {
	return ensureCoreDNS(ctx, "nodelocal", "CoreDNS as NodeLocal DNSCache once (about a minute on two cores)", progress)
}

// ensureCoreDNS builds the program of that name in integration/agreement/testdata.
func ensureCoreDNS(ctx context.Context, name, what string, progress io.Writer) (string, error) {
	source := "testdata/" + name + "/main.go"
	dir, err := build{
		what:   what,
		module: "agreement", files: []string{"go.mod", "go.sum", source}, flags: []string{"-trimpath", "-ldflags", "-s -w"},
		targets: []target{{name: name, pkg: "./" + source}},
	}.ensure(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("building %s: %w", what, err)
	}
	return filepath.Join(dir, name), nil
}

// containerdVersion is stamped into containerd, as its own build does: kubelet parses it. It is the
// version that integration/tools/node requires.
const containerdVersion = "v2.4.2"

// EnsureNodeRuntime is Ensure for what runs containers on a machine, in the versions that
// integration/tools/node names: containerd, its shim, ctr, runc, and the plugins bridge, loopback,
// host-local and portmap of the container network interface. runc needs gcc, pkg-config and the
// headers of libseccomp.
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
			// runc first: a missing C compiler is reported at once.
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
