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
