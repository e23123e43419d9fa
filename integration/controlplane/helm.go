package controlplane

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
)

// EnsureHelm is Ensure for helm, in the version that integration/helm names. It returns the path of the program.
func EnsureHelm(ctx context.Context, progress io.Writer) (string, error) {
	dir, err := build{
		what:   "helm once (about 2 minutes on two cores, 700 packages)",
		module: "helm", files: []string{"go.mod", "go.sum"}, flags: []string{"-trimpath", "-ldflags", "-s -w"},
		targets: []target{{name: "helm", pkg: "helm.sh/helm/v3/cmd/helm"}},
	}.ensure(ctx, progress)
	if err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	return filepath.Join(dir, "helm"), nil
}
