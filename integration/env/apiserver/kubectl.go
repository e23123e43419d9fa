package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Kubeconfig returns the path of a kubeconfig of the admin, which is Admin as it was at the
// start.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Kubectl runs the real kubectl as admin and returns what it wrote to standard output. An error carries
// what it wrote to standard error.
func (c *Cluster) Kubectl(args ...string) (string, error) { return c.KubectlIn(c.ctx, nil, args...) }

// KubectlIn is Kubectl that ends with ctx, and reads its standard input; nil is an empty one.
func (c *Cluster) KubectlIn(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	// The kernel kills a child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Tools().Path("kubectl"), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &diag
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(),
		"KUBECONFIG="+c.kubeconfig, "KUBECACHEDIR="+filepath.Join(c.Dir(), "kubectl-cache"), "HOME="+c.Dir())
	if err := Within(c.Namespace(), cmd.Run); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(diag.Bytes()))
	}
	return out.String(), nil
}

// MustKubectl is Kubectl for a command that has to succeed.
func (c *Cluster) MustKubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Apply applies manifests that are given as text, as `kubectl apply -f -` does.
func (c *Cluster) Apply(t testing.TB, manifests string) {
	t.Helper()
	if _, err := c.KubectlIn(c.ctx, strings.NewReader(manifests), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// ApplyFile applies files and folders, as `kubectl apply -f` does.
func (c *Cluster) ApplyFile(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		c.MustKubectl(t, "apply", "-f", path)
	}
}
