package chart

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gridproxy/integration/env/apiserver"
)

// Name and Namespace are those of the release in every example.
const (
	Name      = "gridproxy"
	Namespace = "gridproxy"
)

// Helm is the real helm with a folder of its own, and no cluster.
type Helm struct {
	Path  string // of the program
	Chart string // of deploy/charts/gridproxy
	Dir   string // where it remembers things
}

// New builds helm if it is missing, with progress, and lets it use a folder, which the caller removes.
func New(ctx context.Context, progress io.Writer, dir string) (Helm, error) {
	path, err := apiserver.EnsureHelm(ctx, progress)
	if err != nil {
		return Helm{}, err
	}
	root, err := Root(ctx)
	if err != nil {
		return Helm{}, err
	}
	return Helm{Path: path, Chart: filepath.Join(root, "deploy", "charts", Name), Dir: dir}, nil
}

// Root is the folder of this module's source.
func Root(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "gridproxy").Output()
	if err != nil {
		return "", fmt.Errorf("finding gridproxy's source (run this inside it, with go in PATH): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Do runs helm and returns what it wrote to standard output. An error carries what it wrote to standard error.
func (h Helm) Do(ctx context.Context, args ...string) (string, error) {
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, h.Path, args...)
	cmd.Stdout, cmd.Stderr = &out, &diag
	cmd.Env = append(os.Environ(), "HOME="+h.Dir, "HELM_CACHE_HOME="+h.Dir, "HELM_CONFIG_HOME="+h.Dir, "HELM_DATA_HOME="+h.Dir,
		"KUBECONFIG=") // no request goes to a cluster
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(diag.Bytes()))
	}
	return out.String(), nil
}

// Template renders the chart for some values, each KEY=VALUE of --set-json, without a cluster.
func (h Helm) Template(ctx context.Context, values ...string) (string, error) {
	return h.Do(ctx, append([]string{"template", Name, h.Chart, "--namespace", Namespace}, set(values)...)...)
}

func set(values []string) []string {
	var args []string
	for _, v := range values {
		args = append(args, "--set-json", v)
	}
	return args
}
