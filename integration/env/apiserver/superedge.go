package apiserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The module of SuperEdge, and where in it are its programs and CRDs.
const (
	superEdge     = "github.com/superedge/superedge"
	superEdgeCRDs = "pkg/application-grid-controller/manifests"
)

// SuperEdge is a folder that holds SuperEdge's controller of Grids and the CRDs that it installs.
type SuperEdge struct{ dir string }

// EnsureSuperEdge is Ensure for the controller that grid-controller takes the place of, in the version that
// integration/tools/superedge names.
func EnsureSuperEdge(ctx context.Context, progress io.Writer) (SuperEdge, error) {
	dir, err := build{
		what:   "SuperEdge's application-grid-controller once (about 2 minutes on two cores, 500 packages)",
		module: "tools/superedge", files: []string{"go.mod", "go.sum"}, flags: []string{"-trimpath", "-ldflags", "-s -w"},
		targets: []target{{name: "application-grid-controller", pkg: superEdge + "/cmd/application-grid-controller"}},
		extra:   copyCRDs,
	}.ensure(ctx, progress)
	if err != nil {
		return SuperEdge{}, fmt.Errorf("building SuperEdge's controller: %w", err)
	}
	return SuperEdge{dir}, nil
}

// CRDs is the folder of the definitions of its Grids.
func (s SuperEdge) CRDs() string { return filepath.Join(s.dir, "manifests") }

// Program is the file of its controller.
func (s SuperEdge) Program() string { return filepath.Join(s.dir, "application-grid-controller") }

// Controller says how to start its controller with a kubeconfig. It reads its CRDs from a folder below /etc, so it gets a
// mount namespace with an /etc of its own, where nothing else is; nothing is left of that when it ends. That needs root,
// unshare and mount.
func (s SuperEdge) Controller(kubeconfig, dir string) Spec {
	const script = `
set -e
mount -t tmpfs tmpfs /etc
mkdir -p /etc/superedge/application-grid-controller
cp -r "$1/manifests" /etc/superedge/application-grid-controller/
exec "$1/application-grid-controller" --kubeconfig="$2" --worker=4 --v=4`
	return Spec{
		Name: "application-grid-controller", Path: "unshare", Dir: dir,
		Args: []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", s.dir, kubeconfig},
	}
}

func copyCRDs(ctx context.Context, source, dir string) error {
	m, err := module(ctx, source, "list", "-m", "-json", superEdge)
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(filepath.Join(m.Dir, superEdgeCRDs))); err != nil {
		return fmt.Errorf("copying SuperEdge's CRDs: %w", err)
	}
	return nil
}
