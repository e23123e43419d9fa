package program

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// The programs of this module that tests start, by the folders of their packages.
const (
	Gridproxy      = "cmd/gridproxy"
	GridController = "cmd/grid-controller"
	GridDNS        = "cmd/grid-dns"
	KubectlGrid    = "cmd/kubectl-grid"
	Workloads      = "integration/env/programs" // what runs on machines and in Pods
	RootFS         = "deploy/image/rootfs"      // makes the root file system of the image
)

// Variable names the folder of programs that are built already. In a virtual machine there is no
// Go.
const Variable = "GRIDPROXY_PROGRAMS"

// ForTest returns the path of a program. The test fails if it cannot be built.
func ForTest(t testing.TB, folder string) string {
	t.Helper()
	file, err := Path(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Path returns the path of a program: in the folder that Variable names, or in bin/programs of this
// repository, where go build links it only if its source has changed.
func Path(ctx context.Context, folder string) (string, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "gridproxy").Output()
		if err != nil {
			return "", fmt.Errorf("finding the source of %s (is go in PATH?): %w", folder, err)
		}
		dir = filepath.Join(strings.TrimSpace(string(root)), "bin", "programs")
		if err := Build(ctx, dir, folder); err != nil {
			return "", err
		}
	}
	file := filepath.Join(dir, path.Base(folder))
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("finding a program (is ./%s in Starts of this suite's row in integration/suites?): %w", folder, err)
	}
	return file, nil
}

// Build builds programs into a folder, with the flags of the Makefile and the build tags of the
// Dockerfile.
func Build(ctx context.Context, dir string, folders ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a folder for programs: %w", err)
	}
	tagged := map[string][]string{}
	for _, folder := range folders {
		tagged[tagsOf(folder)] = append(tagged[tagsOf(folder)], "gridproxy/"+folder)
	}
	for tags, packages := range tagged {
		args := append([]string{"build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-tags=" + tags, "-o", dir + "/"}, packages...)
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", strings.Join(packages, ", "), err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// tagsOf returns the build tags of a program in the image.
func tagsOf(folder string) string {
	if folder == GridDNS {
		return "nethttpomithttp2"
	}
	return ""
}
