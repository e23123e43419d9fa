package apiserver

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// EnsureHelm is Ensure for helm, in the version that integration/tools/deploy names. It returns the
// path of the program. Without a cluster to ask, a helm that is not told otherwise takes Kubernetes
// 1.20 for granted.
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
